/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare zygote: a zygote without an interpreter, for sandboxes whose program is executed later. A process of
 * a few pages is cloned in a fraction of the time that a copy of the broker takes, and the broker does other
 * work meanwhile. Linked statically against musl, as init is.
 */
#include "agent/cloner.h"

#include <unistd.h>

int main(void)
{
	static struct cloner cloner;

	if (cloner_open(&cloner) < 0 || cloner_ready() < 0)
		return 1;
	for (;;)
		cloner_serve(&cloner);
}
