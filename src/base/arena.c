/* SPDX-License-Identifier: Apache-2.0 */
/* See arena.h. One malloc a piece: pieces are few (lists, decoded files), some of them large. */
#include "base/arena.h"

#include <stdalign.h>
#include <string.h>

struct arena_block {
	struct arena_block *next;
	alignas(max_align_t) char data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *block;

	if (n > PTRDIFF_MAX - sizeof(*block))
		return NULL;
	block = calloc(1, sizeof(*block) + MAX(n, (size_t)1));
	if (!block)
		return NULL;
	block->next = a->blocks;
	a->blocks = block;
	return block->data;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = arena_alloc(a, len + 1);

	if (copy)
		memcpy(copy, s, len);
	return copy;
}

void arena_done(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *block = a->blocks;

		a->blocks = block->next;
		free(block);
	}
}
