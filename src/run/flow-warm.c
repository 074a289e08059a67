/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a run can be warm, and in which runtime. The result is only a hint: a broker without such a runtime
 * starts the stage cold, with the same result. So every doubtful case stays cold, and nothing here fails.
 */
#include "run/run.h"

#include "plan/warm-table.h"
#include "run/toolchain/imports.h"

#include <stdio.h>
#include <string.h>

enum { WARM_WORDS_MAX = 64 }; /* as many as a plan holds of each kind */

static size_t count_module_words(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* A module's name up to its first dot. */
static size_t top_len(const char *module)
{
	return strcspn(module, ".");
}

struct wanted_modules {
	const struct language_warm *warm;
	uint32_t hits[WARM_TIERS_MAX + 1]; /* the modules of each tier that are imported, as bits */
	bool beyond_light;		   /* a module that is not light is imported */
};
_Static_assert(WARM_MODULES_MAX <= 32, "a bit a module");

/* The bits of the modules with this top-level name: the first of them is enough. */
static uint32_t bit_of(const char *const *modules, const char *name, size_t len)
{
	for (size_t m = 0; modules[m]; m++)
		if (top_len(modules[m]) == len && memcmp(modules[m], name, len) == 0)
			return UINT32_C(1) << m;
	return 0;
}

static void want(void *data, const char *name, size_t len)
{
	struct wanted_modules *w = data;

	for (size_t t = 0; w->warm->tiers[t]; t++)
		w->hits[t] |= bit_of((const char *const *)w->warm->tiers[t], name, len);
	if (!bit_of((const char *const *)w->warm->light, name, len))
		w->beyond_light = true;
}

/*
 * The light tier, if the program imports nothing else. Otherwise the smallest of the tiers that have most of the
 * imported modules; NULL: no tier has any.
 */
static const char *const *tier_of_code(const struct language *lang, struct span code)
{
	const struct language_warm *warm = &lang->warm;
	struct wanted_modules w = { .warm = warm };
	const char *const *best = NULL;
	int best_hits = 0;

	if (!warm->tiers[0] || !language_has_extension(lang, "py") || !code.data)
		return NULL;
	imports_scan(code.data, code.len, want, &w);
	if (warm->light[0] && !w.beyond_light)
		return (const char *const *)warm->light;
	for (size_t t = 0; warm->tiers[t]; t++) {
		const char *const *tier = (const char *const *)warm->tiers[t];
		int hits = warm->tiers[t] == warm->light ? 0 : __builtin_popcount(w.hits[t]);

		if (hits > best_hits || (hits && hits == best_hits &&
					 count_module_words(tier) < count_module_words(best))) {
			best = tier;
			best_hits = hits;
		}
	}
	return best;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_all(const char *const *list, const char *const *words)
{
	for (; *words; words++) {
		const char *const *at = list;

		while (*at && strcmp(*at, *words) != 0)
			at++;
		if (!*at)
			return false;
	}
	return true;
}

/* The modules that the request names, sorted: another order means the same runtime. */
static const char *const *named_modules(const struct local_run *run)
{
	const char **named = run->request->preload;
	const char *const *const *tiers = (const char *const *const *)run->language->warm.tiers;
	size_t n = count_module_words((const char *const *)named);

	for (size_t t = 0; tiers[t]; t++)
		if (count_module_words(tiers[t]) == n &&
		    has_all(tiers[t], (const char *const *)named))
			return tiers[t];
	qsort(named, n, sizeof(*named), by_text);
	return (const char *const *)named;
}

bool flow_is_shadowed(const struct local_run *run, const char *module)
{
	size_t n = top_len(module);

	for (size_t i = 0; i < run->n_files; i++) {
		const char *path = run->files[i].path;

		if (strncmp(path, module, n) == 0 && (path[n] == '.' || path[n] == '/'))
			return true;
	}
	return false;
}

static bool is_any_shadowed(const struct local_run *run, const char *const *modules)
{
	while (*modules && !flow_is_shadowed(run, *modules))
		modules++;
	return *modules;
}

static const char *const *choose_modules(const struct local_run *run)
{
	return run->request->preload ? named_modules(run) : tier_of_code(run->language, run->code);
}

static bool uses(const char *const *words, const char *mark)
{
	for (; *words; words++)
		if (strstr(*words, mark))
			return true;
	return false;
}

/* The command that is started ahead: of the request only its limits may be in it. */
static bool describe_start(struct local_run *run, const struct word_context *words,
			   struct plan_warm *ret)
{
	const struct language *lang = run->language;
	const char *const *argv = (const char *const *)lang->warm.argv;
	size_t n_env = count_module_words((const char *const *)lang->env),
	       n_warm = count_module_words((const char *const *)lang->warm.env);
	struct word_context c = *words;
	const char **env, **on_top;
	struct span runner = { 0 };
	char path[32];

	if (lang->warm.runner &&
	    registry_runner(run->atoll->registry, lang->warm.runner, &runner) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", WARM_FILE_FD);
	c.runner_text = runner.data;
	c.runner_fd = path;
	ret->argv = (const char *const *)flow_expand_all(run, argv, &c, 0);
	env = flow_expand_all(run, (const char *const *)lang->env, &c, n_warm);
	on_top = flow_expand_all(run, (const char *const *)lang->warm.env, &c, 0);
	if (!ret->argv || !env || !on_top || count_module_words(ret->argv) > WARM_WORDS_MAX ||
	    count_module_words(plan_base_env) + n_env + n_warm > WARM_WORDS_MAX)
		return false;
	memcpy(env + n_env, on_top, n_warm * sizeof(*env));
	ret->env = (const char *const *)env;
	if (uses(argv, "{runner_fd}"))
		ret->file = lang->warm.runner;
	return true;
}

/*
 * If the work directory is read-only, a finished sandbox cannot be given the program; a root that only one program may write to is not
 * kept ready.
 */
static bool can_be_warm(const struct local_run *run)
{
	const struct request *req = run->request;

	if (!run->atoll->warm || run->language->warm.kind == WARMTH_NONE || run->decision.tty ||
	    run->decision.read_only || run->decision.writable_root ||
	    run->decision.libraries_only || req->image || req->n_mounts > 0)
		return false;
	for (size_t i = 0; i < req->n_env; i++)
		if (language_wants_cold(run->language, req->env[i].name))
			return false;
	return true;
}

const struct plan_warm *flow_warm(struct local_run *run, const struct word_context *c)
{
	const char *const *modules;
	struct plan_warm *warm;

	if (!can_be_warm(run))
		return NULL;
	warm = arena_alloc(&run->memory, sizeof(*warm));
	if (!warm)
		return NULL;
	warm->name = run->language->name;
	if (run->language->warm.kind == WARMTH_FORK) {
		warm->kind = WARM_FORK;
		modules = choose_modules(run);
		if (modules && !is_any_shadowed(run, modules))
			warm->modules = modules;
		return warm;
	}
	warm->kind = WARM_START;
	return describe_start(run, c, warm) ? warm : NULL;
}
