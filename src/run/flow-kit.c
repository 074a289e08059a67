/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If there is a kit for a compile stage, the stage uses it. A kit only makes a compile faster: if the outcome
 * may depend on the kit, the compile is repeated without it. So a kit that is damaged, vanishes or does not fit
 * costs time and nothing else.
 */
#include "run/flow-kit.h"

#include "base/fd.h"
#include "run/toolchain/kit.h"

#include <string.h>

/* A source that mentions the kit's path could detect the kit. */
static bool is_mentioned(const struct local_run *run)
{
	for (size_t i = 0; i < run->n_files; i++) {
		const struct span *data = &run->files[i].data;

		if (data->len > 0 &&
		    memmem(data->data, data->len, SANDBOX_KIT, sizeof(SANDBOX_KIT) - 1))
			return true;
	}
	for (const char **arg = run->request->compiler_args; arg && *arg; arg++)
		if (strstr(*arg, SANDBOX_KIT))
			return true;
	return false;
}

/* A kit with words of its own was made for the language's own flags. */
static bool has_other_flags(const struct local_run *run)
{
	const char **args = run->request->compiler_args;

	return args && args[0] && run->language->kit.words[0];
}

const char *flow_kit(struct local_run *run)
{
	_cleanup_close_ int place_fd = -EBADF;
	char key[SHA256_HEX], path[PLAN_PATH_MAX];

	/* An image has a toolchain of its own. */
	if (!language_has_kit(run->language) || run->request->image || has_other_flags(run) ||
	    is_mentioned(run))
		return NULL;
	place_fd = kit_place_open(atoll_cache(run->atoll));
	if (place_fd < 0 || kit_key(run->language, run->policy, key) < 0 ||
	    kit_find(place_fd, key, path, sizeof(path)) < 0)
		return NULL;
	return arena_strndup(&run->memory, path, strlen(path));
}

static size_t count_kit_words(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* a[0] … a[first-1], all of b, the rest of a. */
static const char **join(struct local_run *run, const char *const *a, size_t first,
			 const char *const *b)
{
	size_t n_a = count_kit_words(a), n_b = count_kit_words(b);
	const char **list = arena_alloc(&run->memory, (n_a + n_b + 1) * sizeof(char *));

	if (!list)
		return NULL;
	memcpy(list, a, first * sizeof(char *));
	memcpy(list + first, b, n_b * sizeof(char *));
	memcpy(list + first + n_b, a + first, (n_a - first) * sizeof(char *));
	return list;
}

int flow_use_kit(struct local_run *run, const char *kit, struct sandbox_spec *in)
{
	const struct language_kit *k = &run->language->kit;
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));

	if (!stage)
		return -ENOMEM;
	*stage = in->stages[0];
	stage->argv = join(run, stage->argv, 1, (const char *const *)k->words);
	stage->env = join(run, stage->env, count_kit_words(stage->env),
			  (const char *const *)k->env);
	if (!stage->argv || !stage->env)
		return -ENOMEM;
	in->stages = stage;
	in->kit = kit;
	return 0;
}

static bool says(const struct result_stream *s, const char *word)
{
	return s->len > 0 && memmem(s->text, s->len, word, strlen(word));
}

static bool is_doubtful(const struct language_kit *k, const struct result_stream *s)
{
	if (s->truncated || says(s, SANDBOX_KIT))
		return true;
	for (const char **word = k->doubt; *word; word++)
		if (says(s, *word))
			return true;
	return false;
}

/* The messages might differ without the kit. */
static bool words_differ(const struct local_run *run, const struct job_outcome *o)
{
	const struct language_kit *k = &run->language->kit;
	struct result_stream out = { 0 }, err = { 0 };
	bool differ = true;

	if (capture_text(&o->out, &out) >= 0 && capture_text(&o->err, &err) >= 0)
		differ = is_doubtful(k, &out) || is_doubtful(k, &err);
	free(out.text);
	free(err.text);
	return differ;
}

bool flow_kit_stands(const struct local_run *run, const struct sandbox_spec *in,
		     const struct job_outcome *o)
{
	struct result_stage stage;

	if (o->error.code != ERROR_NONE)
		return false;
	flow_stage(o, 0, in->stages, &stage);
	switch (stage.verdict.cause.kind) {
	case CAUSE_EXIT:
		return (stage.verdict.status != STATUS_SUCCESS || run->product.n_files > 0) &&
		       !words_differ(run, o);
	case CAUSE_TIMEOUT:
	case CAUSE_CPU_TIME:
	case CAUSE_IDLE:
		/* Without a kit it would take longer, not shorter. */
	case CAUSE_CANCELLED:
	case CAUSE_INTERRUPTED:
		return true;
	default:
		return false;
	}
}
