/* SPDX-License-Identifier: Apache-2.0 */
/* See memo.h. */
#include "client/memo.h"

#include <string.h>

static bool is_same(const struct tool_id *a, const struct tool_id *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode &&
	       a->device == b->device;
}

struct policy *memo_policy(struct memo *m, const char *name, const struct tool_id *file)
{
	for (size_t i = 0; i < MEMO_POLICIES; i++) {
		struct memo_policy *p = &m->policies[i];

		if (!p->policy || strcmp(p->name, name) != 0 || !is_same(&p->file, file))
			continue;
		p->used = ++m->turn;
		return p->policy;
	}
	return NULL;
}

int memo_keep_policy(struct memo *m, const char *name, const struct tool_id *file,
		     struct policy *policy)
{
	struct memo_policy *oldest = &m->policies[0];
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	for (size_t i = 1; i < MEMO_POLICIES; i++)
		if (m->policies[i].used < oldest->used)
			oldest = &m->policies[i];
	free(oldest->name);
	(void)policy_free(oldest->policy);
	*oldest = (struct memo_policy){ copy, *file, policy, ++m->turn };
	return 0;
}

static void keep_version(struct memo *m, const struct language *lang, const struct tool_id *runtime,
			 const char *version)
{
	struct memo_version *slot = NULL;
	char *copy = strdup(version);

	if (!copy)
		return;
	for (size_t i = 0; i < MEMO_VERSIONS && !slot; i++)
		if (m->versions[i].language == lang)
			slot = &m->versions[i];
	if (!slot)
		slot = &m->versions[m->next_version++ % MEMO_VERSIONS];
	free(slot->version);
	*slot = (struct memo_version){ lang, *runtime, copy };
}

int memo_version(struct memo *m, const struct language *lang, const struct prober *p, char **ret)
{
	struct tool_id runtime;
	int r = p->image ? -EXDEV : tool_identify(NULL, lang->runtime, &runtime);

	for (size_t i = 0; r == 0 && i < MEMO_VERSIONS; i++)
		if (m->versions[i].language == lang && is_same(&m->versions[i].runtime, &runtime)) {
			*ret = strdup(m->versions[i].version);
			return *ret ? 0 : -ENOMEM;
		}
	if (language_version(lang, p, ret) < 0)
		return -ENODATA;
	if (r == 0)
		keep_version(m, lang, &runtime, *ret);
	return 0;
}

void memo_done(struct memo *m)
{
	for (size_t i = 0; i < MEMO_POLICIES; i++) {
		free(m->policies[i].name);
		(void)policy_free(m->policies[i].policy);
	}
	for (size_t i = 0; i < MEMO_VERSIONS; i++)
		free(m->versions[i].version);
	*m = (struct memo){ 0 };
}
