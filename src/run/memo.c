/* SPDX-License-Identifier: Apache-2.0 */
/* See memo.h. */
#include "run/memo.h"

#include <string.h>

static bool is_same_tool(const struct tool_id *a, const struct tool_id *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode &&
	       a->device == b->device;
}

struct memo_policy *memo_policy(struct memo *m, const char *name, const struct tool_id *file)
{
	for (size_t i = 0; i < MEMO_POLICIES; i++) {
		struct memo_policy *p = m->policies[i];

		if (!p || strcmp(p->name, name) != 0 || !is_same_tool(&p->file, file))
			continue;
		p->used = ++m->uses;
		p->holders++;
		return p;
	}
	return NULL;
}

void memo_release(struct memo_policy *p)
{
	if (!p || --p->holders > 0)
		return;
	free(p->name);
	(void)policy_free(p->policy);
	free(p);
}

struct memo_policy *memo_keep_policy(struct memo *m, const char *name, const struct tool_id *file,
				     struct policy *policy)
{
	struct memo_policy **place = &m->policies[0], *p = calloc(1, sizeof(*p));
	char *copy = strdup(name);

	if (!p || !copy) {
		free(p);
		free(copy);
		return NULL;
	}
	for (size_t i = 0; i < MEMO_POLICIES && *place; i++)
		if (!m->policies[i] || m->policies[i]->used < (*place)->used)
			place = &m->policies[i];
	memo_release(*place);
	*p = (struct memo_policy){
		.name = copy, .file = *file, .policy = policy, .used = ++m->uses, .holders = 2
	};
	*place = p;
	return p;
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
	int r = p->image ? -EXDEV : tool_identify(NULL, lang->runtime.path, &runtime);

	for (size_t i = 0; r == 0 && i < MEMO_VERSIONS; i++)
		if (m->versions[i].language == lang &&
		    is_same_tool(&m->versions[i].runtime, &runtime)) {
			*ret = strdup(m->versions[i].version);
			return *ret ? 0 : -ENOMEM;
		}
	if (language_version(lang, p, ret) < 0)
		return -ENODATA;
	if (r == 0)
		keep_version(m, lang, &runtime, *ret);
	return 0;
}

bool memo_has_module(struct memo *m, const struct language *lang, const char *name)
{
	struct tool_id runtime;

	if (tool_identify(NULL, lang->runtime.path, &runtime) < 0)
		return false;
	for (size_t i = 0; i < MEMO_MODULES; i++)
		if (m->modules[i].language == lang && strcmp(m->modules[i].name, name) == 0 &&
		    is_same_tool(&m->modules[i].runtime, &runtime))
			return true;
	return false;
}

void memo_keep_module(struct memo *m, const struct language *lang, const char *name)
{
	struct memo_module *slot;
	struct tool_id runtime;
	char *copy;

	if (memo_has_module(m, lang, name) || tool_identify(NULL, lang->runtime.path, &runtime) < 0)
		return;
	copy = strdup(name);
	if (!copy)
		return;
	slot = &m->modules[m->next_module++ % MEMO_MODULES];
	free(slot->name);
	*slot = (struct memo_module){ lang, runtime, copy };
}

void memo_done(struct memo *m)
{
	for (size_t i = 0; i < MEMO_POLICIES; i++)
		memo_release(m->policies[i]);
	for (size_t i = 0; i < MEMO_VERSIONS; i++)
		free(m->versions[i].version);
	for (size_t i = 0; i < MEMO_MODULES; i++)
		free(m->modules[i].name);
	*m = (struct memo){ 0 };
}
