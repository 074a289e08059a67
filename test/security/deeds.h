/* SPDX-License-Identifier: Apache-2.0 */
/* What interrupts.c does over and over: a list of items that deeds.c and interrupts.c add to. */
#pragma once

enum { ROOM = 4 << 20 };

/* Adds an item; `once` is called with { a, b, 0, 0 }. */
struct item *add(const char *name, void (*once)(const int *), int a, int b);

/* What gets past the kernel's checks of arguments. `memory` is ROOM bytes of private memory. */
void add_deeds(char *memory);

struct item {
	char name[48];
	void (*once)(const int *);
	int with[4];
};
