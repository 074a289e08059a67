/* SPDX-License-Identifier: Apache-2.0 */
/* See tab.h. */
#include "http/tab.h"

#include <stdlib.h>
#include <string.h>

struct tab *tab_get(struct tab **list, const char *name)
{
	struct tab *t = *list;

	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return NULL;
		(void)snprintf(t->name, sizeof(t->name), "%s", name);
		t->next = *list;
		*list = t;
	}
	t->refs++;
	return t;
}

struct tab *tab_put(struct tab **list, struct tab *t)
{
	if (!t || --t->refs > 0)
		return NULL;
	while (*list != t)
		list = &(*list)->next;
	*list = t->next;
	free(t);
	return NULL;
}

const char *tab_refusal(int64_t own_bytes, int64_t total_bytes, int64_t more_bytes,
			int64_t max_bytes)
{
	if (own_bytes > 0 && own_bytes + more_bytes > max_bytes / 2)
		return "Too many of your large requests or answers are under way; try again later.";
	if (total_bytes + more_bytes > max_bytes)
		return "Too many large requests or answers are under way; try again later.";
	return NULL;
}
