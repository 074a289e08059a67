/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules that a request names in `preload` and that do not exist. Loading ahead is only a hint, so the run does not fail; a warning in
 * the result tells of a typing error.
 *
 * Only the runtime knows its modules: runners/<language>/libraries.* is asked, in a sandbox of its own, when the program has ended. A
 * language without that file gives no warning. Modules of the language's tiers are not asked about. Modules that were found are remembered
 * (memo.h); others are asked about each time, because they may be installed at any time.
 */
#include "run/run.h"

#include <string.h>

static bool is_in_a_tier(const struct language *lang, const char *module)
{
	for (const char ***tier = lang->warm.tiers; *tier; tier++)
		for (const char **m = *tier; *m; m++)
			if (strcmp(*m, module) == 0)
				return true;
	return false;
}

static bool is_doubtful(struct local_run *run, const char *module)
{
	return !is_in_a_tier(run->language, module) && !flow_is_shadowed(run, module) &&
	       (run->request->image || !memo_has_module(&run->atoll->memo, run->language, module));
}

/* In an executor only a fiber can wait. After a kill the caller waits for the result. */
static bool may_ask(const struct local_run *run, const struct result *res)
{
	if (!run->language || !run->request || !run->request->preload ||
	    res->refusal != ERROR_NONE || (run->control && run->control->killed))
		return false;
	return !run->atoll->keeper || fiber_current();
}

static void warn_of(struct result *res, const struct language *lang, const char *module)
{
	json_t *text = json_sprintf(
		"preload: %s has no module '%s': nothing was loaded ahead for it", lang->title,
		module);

	if (!res->warnings)
		res->warnings = json_array();
	(void)json_array_append_new(res->warnings, text);
}

void flow_warn_modules(struct local_run *run, struct result *res)
{
	const char *doubtful[REQUEST_PRELOAD_MAX + 1] = { NULL };
	struct prober prober;
	json_t *found;
	size_t n = 0;

	if (!may_ask(run, res))
		return;
	for (const char **m = run->request->preload; *m && n < REQUEST_PRELOAD_MAX; m++)
		if (is_doubtful(run, *m))
			doubtful[n++] = *m;
	if (n == 0)
		return;
	prober = atoll_prober(run->atoll, run->request->image);
	found = language_libraries(run->language, doubtful, &prober);
	for (size_t i = 0; found && i < n; i++)
		if (!json_object_get(found, doubtful[i]))
			warn_of(res, run->language, doubtful[i]);
		else if (!run->request->image)
			memo_keep_module(&run->atoll->memo, run->language, doubtful[i]);
	json_decref(found);
}
