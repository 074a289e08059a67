/* SPDX-License-Identifier: Apache-2.0 */
/* The agent (agent.h) and the forge (bare-zygote.c), embedded at build time. */
#pragma once

extern const char agent_blob[], agent_blob_end[];
extern const char forge_blob[], forge_blob_end[];
