/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a body as submitted to a run of the executor. Some keys are the engine's own (archive, priority, callback_url, and
 * "adaptive" as timeout) or mean something else for each caller (workspace); they are taken out or replaced in a shallow
 * copy. Most bodies have none of them and go as they are.
 */
#include "engine/engine-private.h"

#include "base/loop/worker.h"
#include "engine/unpack.h"
#include "run/analyse/analyse.h"

#include <string.h>

void prepared_done(struct prepared *p)
{
	json_decref(p->request);
	p->request = NULL;
}

static bool is_adaptive(const json_t *body)
{
	const char *timeout = json_string_value(
		json_object_get(json_object_get(body, "limits"), "timeout"));

	return timeout && strcmp(timeout, "adaptive") == 0;
}

static int read_priority(const json_t *value, int *ret, struct error *err)
{
	json_int_t n = json_integer_value(value);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || n < -PRIORITY_MAX || n > PRIORITY_MAX)
		return error_field(err, "priority",
				   "priority: it is not a whole number from -%d to %d",
				   PRIORITY_MAX, PRIORITY_MAX);
	*ret = (int)n;
	return 0;
}

int prepare_level(const struct execution *x, const json_t *body)
{
	struct error err = { 0 };
	int priority = 0;

	(void)!read_priority(json_object_get(body, "priority"), &priority, &err);
	return 2 * (priority + PRIORITY_MAX) + !execution_is_job(x);
}

bool prepare_is_judging(const json_t *body)
{
	return json_array_size(json_object_get(body, "tests")) > 0;
}

int prepare_callback(struct execution *x, const json_t *body, struct error *err)
{
	const json_t *value = json_object_get(body, "callback_url");
	const char *url = json_string_value(value);
	int r;

	if (!value || json_is_null(value) || x->callback_url)
		return 0;
	if (!url || strlen(url) != json_string_length(value))
		return error_field(err, "callback_url", "callback_url: it is not a text");
	r = poster_check(x->engine, url, err);
	if (r < 0)
		return r;
	x->callback_url = strdup(url);
	return x->callback_url ? 0 : error_oom(err);
}

/* {…} of the body's own, so that adding to it changes nothing of the caller's. */
static int unshare(json_t *request, const char *key)
{
	const json_t *given = json_object_get(request, key);
	json_t *own = json_is_object(given) ? json_copy((json_t *)(uintptr_t)given) : json_object();

	return json_object_set_new(request, key, own);
}

struct archive_unpacking {
	int unpacker_fd;
	const json_t *archive;
	json_t *files;
	struct error *err;
	int r;
};

static void unpack(void *data)
{
	struct archive_unpacking *u = data;

	u->r = unpack_base64(u->unpacker_fd, u->archive, u->files, u->err);
}

struct raw_unpacking {
	int unpacker_fd;
	struct span packed;
	json_t *files;
	struct error *err;
	int r;
};

static void unpack_raw(void *data)
{
	struct raw_unpacking *u = data;

	u->r = unpack_archive(u->unpacker_fd, u->packed, u->files, u->err);
}

int engine_unpack(struct engine *e, struct span packed, json_t *files, struct error *err)
{
	struct raw_unpacking u = { e->o.unpacker_fd, packed, files, err, 0 };

	worker_call(WORKER_ALWAYS, unpack_raw, &u);
	return u.r;
}

static int take_archive(const struct engine *e, json_t *request, const json_t *archive,
			struct error *err)
{
	struct archive_unpacking u = { e->o.unpacker_fd, archive, .err = err };
	const json_t *given = json_object_get(request, "files");

	if (!archive || json_is_null(archive))
		return 0;
	if (given && !json_is_null(given) && !json_is_object(given))
		return 0; /* the request's reader has the words */
	if (unshare(request, "files") < 0)
		return error_oom(err);
	u.files = json_object_get(request, "files");
	worker_call(WORKER_ALWAYS, unpack, &u); /* a few bytes may be many when they are unpacked */
	return u.r;
}

int prepare_body(struct engine *e, json_t *body, struct prepared *ret, struct error *err)
{
	static const char *const own[] = { "archive", "priority", "callback_url" };
	struct prepared p = { .adaptive = is_adaptive(body) };
	const json_t *archive = json_object_get(body, "archive");
	bool plain = !p.adaptive;
	int r, priority;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		plain = plain && !json_object_get(body, own[i]);
	if (plain) {
		ret->request = json_incref(body);
		return 0;
	}
	p.request = json_copy(body);
	if (!p.request)
		return error_oom(err);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		(void)json_object_del(p.request, own[i]);
	r = read_priority(json_object_get(body, "priority"), &priority, err);
	if (r >= 0)
		r = take_archive(e, p.request, archive, err);
	if (r >= 0 && p.adaptive &&
	    (unshare(p.request, "limits") < 0 ||
	     json_object_del(json_object_get(p.request, "limits"), "timeout") < 0))
		r = error_oom(err);
	if (r < 0) {
		prepared_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

/* Of the same code; where there are none, of the first label that has any. */
static int past_runs(struct execution *x, const struct admission *a,
		     int64_t ret_us[HISTORY_PAST_MAX])
{
	struct history_past past = { .caller = x->caller->name, .code_sha256 = a->code_sha256 };
	const char *name;
	json_t *value;
	int n = *a->code_sha256 ? history_durations(x->engine->o.history, &past, ret_us) : 0;

	json_object_foreach((json_t *)(uintptr_t)a->labels, name, value)
	{
		if (n != 0)
			break;
		past = (struct history_past){ .caller = x->caller->name,
					      .label_name = name,
					      .label_value = json_string_value(value) };
		if (past.label_value)
			n = history_durations(x->engine->o.history, &past, ret_us);
	}
	return MAX(n, 0);
}

static int open_run(struct execution *x, json_t *request, struct error *err)
{
	struct runner *runner = x->engine->o.runner;

	return runner->vtable->open(runner, request, &x->run, err);
}

static int choose_timeout(struct execution *x, struct prepared *p, struct error *err)
{
	const struct admission *a = &x->run->admission;
	struct adaptive_timeout *chosen = malloc(sizeof(*chosen));
	int64_t past[HISTORY_PAST_MAX];
	int n = past_runs(x, a, past);
	json_t *again;

	if (!chosen)
		return error_oom(err);
	for (int i = 0; i < n; i++)
		past[i] /= US_PER_MS;
	*chosen = adaptive_choose(
		past, (size_t)n,
		&(struct adaptive_rules){ .factor_milli = x->engine->o.adaptive_factor_milli,
					  .min_ms = x->engine->o.adaptive_min_ms,
					  .preset_ms = a->limits.timeout_ms,
					  .ceiling_ms = a->timeout_max_ms });
	run_discard(TAKE_PTR(x->run));
	free(x->record.timeout_chosen);
	x->record.timeout_chosen = chosen;
	/* The runner holds a reference on the tree it was given: a new one. */
	again = json_copy(p->request);
	if (!again || unshare(again, "limits") < 0 ||
	    json_object_set_new(json_object_get(again, "limits"), "timeout",
				json_real((double)chosen->timeout_ms / MS_PER_SEC)) < 0) {
		json_decref(again);
		return error_oom(err);
	}
	json_decref(p->request);
	p->request = again;
	return open_run(x, p->request, err);
}

enum { OWNER_CHARS = 12 };

/* "name" as "OWNER-name", the owner by its hash. NULL: the workspace is shared, or no name. */
static json_t *own_name(const struct execution *x, const json_t *given, struct error *err)
{
	const json_t *name = json_is_object(given) ? json_object_get(given, "name") : given;
	const char *text = json_string_value(name), *shared = x->engine->o.shared_workspace;
	char hash[SHA256_HEX];
	struct sha256 h;

	/* What is no name alone must not become one, nor be shown as one: the request's reader has the words. */
	if (!text || strlen(text) != json_string_length(name) || !request_is_workspace(text) ||
	    (shared && strcmp(text, shared) == 0))
		return NULL;
	if (strlen(text) > REQUEST_WORKSPACE_MAX - OWNER_CHARS - 1) {
		(void)error_field(err, "workspace",
				  "workspace: its name has more than %d characters",
				  REQUEST_WORKSPACE_MAX - OWNER_CHARS - 1);
		return NULL;
	}
	sha256_init(&h);
	sha256_update(&h, x->caller->name, strlen(x->caller->name));
	sha256_final(&h, hash);
	return json_sprintf("%.*s-%s", OWNER_CHARS, hash, text);
}

/* Callers share no workspace but that of engine_options: the same name is another directory. The operator's are as named. */
static int own_workspace(const struct execution *x, struct prepared *p, struct error *err)
{
	json_t *given = json_object_get(p->request, "workspace"), *name, *copy;
	int r;

	if (!given || strncmp(x->caller->name, "uid:", 4) == 0)
		return 0;
	name = own_name(x, given, err);
	if (!name)
		return err->code == ERROR_NONE ? 0 : -EINVAL;
	copy = json_copy(p->request);
	if (json_is_object(given)) {
		given = json_copy(given);
		r = json_object_set_new(given, "name", name);
	} else {
		given = name;
		r = 0;
	}
	if (!copy || r < 0 || json_object_set_new(copy, "workspace", given) < 0) {
		json_decref(copy);
		return error_oom(err);
	}
	json_decref(p->request);
	p->request = copy;
	return 0;
}

void prepare_admitted(struct execution *x, struct run *run)
{
	const struct admission *a = &run->admission;

	x->run = run;
	x->limits = a->limits;
	memcpy(x->record.code_sha256, a->code_sha256, sizeof(x->record.code_sha256));
	(void)snprintf(x->record.language, sizeof(x->record.language), "%s", a->language);
	(void)snprintf(x->record.policy, sizeof(x->record.policy), "%s", a->policy);
}

int prepare_run(struct execution *x, struct prepared *p, struct error *err)
{
	int r = own_workspace(x, p, err);

	if (r == 0)
		r = open_run(x, p->request, err);
	if (r >= 0 && p->adaptive)
		r = choose_timeout(x, p, err);
	if (r < 0)
		return r;
	prepare_admitted(x, x->run);
	return 0;
}
