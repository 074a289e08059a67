/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled agent and bare zygote as bytes inside the broker: there is no file that could be swapped. */
#include "broker/warm/agent-blob.h"

#include "atoll-agent-path.h"
#include "atoll-bare-zygote-path.h"

#define EMBED(name, path)                                                                          \
	__asm__(".section .rodata\n"                                                               \
		".balign 16\n"                                                                     \
		".global " name "\n" name ":\n"                                                    \
		".incbin \"" path "\"\n"                                                           \
		".global " name "_end\n" name "_end:\n"                                            \
		".byte 0\n"                                                                        \
		".previous\n")

EMBED("agent_blob", ATOLL_AGENT_PATH);
EMBED("bare_zygote_blob", ATOLL_BARE_ZYGOTE_PATH);
