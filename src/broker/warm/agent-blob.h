/* SPDX-License-Identifier: Apache-2.0 */
/* The agent (agent.h) and the bare zygote (bare-zygote.c), embedded at build time. */
#pragma once

extern const char agent_blob[], agent_blob_end[];
extern const char bare_zygote_blob[], bare_zygote_blob_end[];
