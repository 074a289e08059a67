/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled relay as bytes inside the program that starts it: no file on disk could be replaced. */
#include "box/egress/egress-blob.h"

#include "atoll-egress-path.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".global egress_blob\n"
	"egress_blob:\n"
	".incbin \"" ATOLL_EGRESS_PATH "\"\n"
	".global egress_blob_end\n"
	"egress_blob_end:\n"
	".byte 0\n"
	".previous\n");
