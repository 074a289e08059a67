/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of runtimes in runs: the version in a result, and whether "python@3.11" is installed. Only the
 * runtime knows its version, and it is asked once (memo.h, toolchain.h). If the request names no version, the
 * run begins without the answer. If the answer does not come in time, or the run is cancelled, the result has
 * no version; the next run finds the answer.
 */
#include "run/run.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_WITHIN_MS = 10000, RETRY_S = 1 };

/*
 * A runtime that is being asked, on a fiber of its own: a run may stop waiting, and later runs still find the
 * answer.
 */
struct version_probe {
	struct atoll *atoll;
	const struct language *language;
	char *image; /* or NULL */
	struct single_flight flight;
	char *version; /* once known */
	int holders;   /* the fiber, and the run that began it */
};

static void probe_release(struct version_probe *p)
{
	if (--p->holders > 0)
		return;
	free(p->image);
	free(p->version);
	free(p);
}

static void probe_go(void *data)
{
	struct version_probe *p = data;
	struct prober prober = atoll_prober(p->atoll, p->image);

	if (memo_version(&p->atoll->memo, p->language, &prober, &p->version) < 0)
		p->version = NULL;
	single_flight_leave(&p->atoll->flights, &p->flight);
	probe_release(p);
}

static struct version_probe *probe_new(struct atoll *a, const struct language *lang,
				       const char *image)
{
	struct version_probe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct version_probe){ .atoll = a, .language = lang, .holders = 1 };
	p->image = image ? strdup(image) : NULL;
	if (!image || p->image)
		return p;
	probe_release(p);
	return NULL;
}

/* Of several runs that need the answer, one asks. If it fails, the others get no answer either. */
static char *wait_for_answer(struct version_probe *p, const struct patience *patience)
{
	struct single_flight **flights = &p->atoll->flights, again;
	char key[SINGLE_FLIGHT_KEY_MAX];

	(void)snprintf(key, sizeof(key), "version %s%s%s", p->language->id, p->image ? " in " : "",
		       p->image ? p->image : "");
	if (!single_flight_join(flights, &p->flight, key, patience))
		return NULL;
	p->holders++;
	if (fiber_start(p->atoll->loop, probe_go, p) < 0) {
		p->holders--;
		single_flight_leave(flights, &p->flight);
		return NULL;
	}
	/* Waits like the others, unless the answer is already there. */
	if (single_flight_join(flights, &again, key, patience))
		single_flight_leave(flights, &again);
	return TAKE_PTR(p->version);
}

static int ask(struct atoll *a, const struct language *lang, const char *image,
	       const struct run_control *control, char **ret)
{
	const struct patience patience = { control ? &control->killed : NULL,
					   clock_now_ns() + ANSWER_WITHIN_MS * NS_PER_MS };
	struct prober prober = atoll_prober(a, image);
	struct version_probe *p;
	char *version;
	int r;

	/* The command line has nothing else to do. */
	if (!a->keeper && !fiber_current())
		return memo_version(&a->memo, lang, &prober, ret);
	prober.run = NULL;
	r = memo_version(&a->memo, lang, &prober, ret);
	/* Without a fiber in an executor, and for a cancelled run, only a known version is used. */
	if (r == 0 || !fiber_current() || (control && control->killed))
		return r;
	p = probe_new(a, lang, image);
	if (!p)
		return -ENOMEM;
	version = wait_for_answer(p, &patience);
	probe_release(p);
	if (!version)
		return memo_version(&a->memo, lang, &prober, ret);
	*ret = version;
	return 0;
}

int flow_version(struct local_run *run, char **ret)
{
	return ask(run->atoll, run->language, run->request->image, run->control, ret);
}

static void learn(void *data)
{
	const struct patience patience = { .until_ns = clock_now_ns() +
						       ANSWER_WITHIN_MS * NS_PER_MS };
	struct version_probe *p = data;

	free(wait_for_answer(p, &patience));
	probe_release(p);
}

char *flow_known_version(struct local_run *run)
{
	struct atoll *a = run->atoll;
	struct prober prober = atoll_prober(a, run->request->image);
	struct version_probe *p;
	char *version;

	prober.run = NULL;
	if (memo_version(&a->memo, run->language, &prober, &version) == 0)
		return version;
	if (run->asked_version)
		return NULL;
	run->asked_version = true;
	p = probe_new(a, run->language, run->request->image);
	if (p && fiber_start(a->loop, learn, p) < 0)
		probe_release(p);
	return NULL;
}

/* "3.11.2" of "Python 3.11.2". */
static const char *number_of(const struct language *lang, const char *version)
{
	size_t n = lang->runtime.version_prefix ? strlen(lang->runtime.version_prefix) : 0;

	return strncmp(version, lang->runtime.version_prefix ? lang->runtime.version_prefix : "",
		       n) == 0
		       ? version + n
		       : version;
}

/* A search among a language and its versions. */
struct version_search {
	struct atoll *atoll;
	const char *image, *wanted;
	struct buf *there;	       /* versions that are installed: "3.11.2, 3.12" */
	const struct language *silent; /* the first installed one that did not tell its version */
};

static bool is_version_wanted(struct version_search *s, const struct language *lang)
{
	_cleanup_free_ char *version = NULL;
	const char *name = lang->version_name;

	if (language_available(lang, s->image, NULL) < 0)
		return false;
	if (ask(s->atoll, lang, s->image, NULL, &version) < 0) {
		version = NULL;
		if (!s->silent && lang->runtime.version_argv[0] && lang->runtime.version_prefix)
			s->silent = lang;
	}
	if (version && language_version_fits(number_of(lang, version), s->wanted))
		return true;
	if (!name && version)
		name = number_of(lang, version);
	if (name) /* names that do not fit a message are left out */
		(void)!buf_printf(s->there, "%s%s", s->there->len > 0 ? ", " : "", name);
	return false;
}

static int refuse_version(const struct version_search *s, const struct language *lang,
			  const char *asked, struct error *err)
{
	int r;

	if (s->silent) {
		r = error_set(err, ERROR_NOT_READY, EAGAIN,
			      "%s cannot be asked for its version now; try again",
			      s->silent->title);
		return error_retry(err, r, RETRY_S);
	}
	r = error_set(err, ERROR_RUNTIME, ENOPKG,
		      "'%.40s': no %s %.20s is installed; installed: %s", asked, lang->title,
		      s->wanted, s->there->len > 0 ? s->there->data : "none that is known");
	if (err)
		(void)snprintf(err->field, sizeof(err->field), "language");
	return r;
}

int atoll_resolve_version(struct atoll *a, const char *asked, const char *image,
			  const struct language **lang, struct error *err)
{
	const struct language *base = *lang, *found = NULL;
	_cleanup_buf_ struct buf there = { .max = 200 };
	struct version_search s = { a, image, registry_open_version(base, asked), &there, NULL };
	int r;

	if (!s.wanted)
		return 0;
	/* One of its versions may be installed although the language's own runtime is not. */
	r = base->n_versions == 0 ? language_available(base, image, err) : 0;
	if (r < 0)
		return r;
	if (is_version_wanted(&s, base))
		found = base;
	for (size_t i = 0; i < base->n_versions && !found; i++)
		if (is_version_wanted(&s, base->versions[i]))
			found = base->versions[i];
	if (!found)
		return refuse_version(&s, base, asked, err);
	*lang = found;
	return 0;
}

/* --- modules of `preload` --- */

/*
 * Modules that a request names in `preload` and that do not exist. Loading ahead is only a hint, so the run does not fail; a warning in
 * the result tells of a typing error.
 *
 * Only the runtime knows its modules: runners/<language>/libraries.* is asked, in a sandbox of its own, when the program has ended. A
 * language without that file gives no warning. Modules of the language's tiers are not asked about. Modules that were found are remembered
 * (memo.h); others are asked about each time, because they may be installed at any time.
 */

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
