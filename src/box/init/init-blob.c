/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled init as bytes inside the program that creates sandboxes: no file on disk could be replaced. */
#include "box/init/init-blob.h"

#include "atoll-init-path.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".global init_blob\n"
	"init_blob:\n"
	".incbin \"" ATOLL_INIT_PATH "\"\n"
	".global init_blob_end\n"
	"init_blob_end:\n"
	".byte 0\n"
	".previous\n");
