/* SPDX-License-Identifier: Apache-2.0 */
/* The static init program, embedded at build time. */
#pragma once

extern const char init_blob[], init_blob_end[];
