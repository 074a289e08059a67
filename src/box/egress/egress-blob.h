/* SPDX-License-Identifier: Apache-2.0 */
/* The static relay program, embedded at build time. */
#pragma once

extern const char egress_blob[], egress_blob_end[];
