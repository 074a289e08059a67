/* SPDX-License-Identifier: Apache-2.0 */
/* The set of sessions: creating, finding, listing, closing. A session of another caller does not exist for a caller. */
#include "session/session-private.h"

#include "base/clock.h"
#include "base/suggest.h"
#include "spec/knob.h"
#include "spec/layer.h"
#include "spec/utf8-json.h"

#include <string.h>

enum {
	LOG_BYTES_MAX = 1 << 20,
	IDLE_DEFAULT_MS = 600000,
	IDLE_MAX_MS = 24 * 3600 * 1000,
	HELD_BYTES_MAX =
		1
		<< 30, /* what all programs of sessions together have said and the front still holds */
};

int sessions_new(const struct sessions_options *options, struct sessions **ret)
{
	struct sessions *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->o = *options;
	all->o.callers->rules[SLOT_SESSIONS] = (struct slot_rule){
		.max = options->max,
		.own_max = MIN(options->max_per_caller, slot_share(options->max)),
		.divided = true,
	};
	all->o.callers->rules[SLOT_SESSION_BYTES] = (struct slot_rule){
		.max = HELD_BYTES_MAX,
		.own_max = HELD_BYTES_MAX / 2,
	};
	*ret = all;
	return 0;
}

struct sessions *sessions_free(struct sessions *all)
{
	free(all);
	return NULL;
}

static bool sessions_is_of(const struct session *s, const char *caller)
{
	return !caller || strcmp(s->caller->name, caller) == 0;
}

/* A copy is there for clients when its fork is answered: before, it is part of that. */
static bool sessions_is_shown(const struct session *s, const char *caller)
{
	return sessions_is_of(s, caller) && (s->was_ready || !*s->made.parent);
}

int64_t sessions_count_of(const struct sessions *all, const char *caller)
{
	int64_t n = 0;

	for (const struct session *s = all->list; s; s = s->next)
		n += sessions_is_of(s, caller);
	return n;
}

struct sessions_counts sessions_count(const struct sessions *all)
{
	struct sessions_counts counts = all->counts;

	for (const struct session *s = all->list; s; s = s->next)
		counts.live++;
	return counts;
}

int64_t sessions_close_of(struct sessions *all, const char *caller)
{
	struct session *s = all->list;
	int64_t n = 0;

	while (s) {
		if (!sessions_is_of(s, caller)) {
			s = s->next;
			continue;
		}
		session_close(s);
		n++;
		/* With one copy that was not ready yet, its siblings are closed: any session may be off the list now. */
		s = all->list;
	}
	return n;
}

void sessions_drain(struct sessions *all)
{
	struct session *s = all->list;

	all->closed = true;
	while (s) {
		if (s->line.n_open > 0) {
			s = s->next;
			continue;
		}
		session_close(s);
		s = all->list;
	}
}

/* --- creating --- */

/* Keys of the session itself; the others make its sandbox. */
static const char *const own_keys[] = { "idle_timeout", "name",	    "host_functions",
					"rules",	"forkable", NULL };
static const char *const sandbox_keys[] = { "language", "limits",  "policy", "files",	  "env",
					    "network",	"preload", "labels", "read_only", NULL };

static bool sessions_is_key(const char *const *list, const char *key)
{
	while (*list && strcmp(*list, key) != 0)
		list++;
	return *list;
}

static int sessions_read_idle_time(struct session *s, const json_t *value, struct error *err)
{
	double seconds = json_number_value(value);

	s->clock.idle_ms = IDLE_DEFAULT_MS;
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_number(value) || seconds < 1 || seconds > IDLE_MAX_MS / (double)MS_PER_SEC)
		return error_field(err, "idle_timeout",
				   "idle_timeout: give seconds from 1 to 86400");
	s->clock.idle_ms = (int64_t)(seconds * MS_PER_SEC);
	return 0;
}

static int sessions_read_name(struct session *s, const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);

	if (!value || json_is_null(value))
		return 0;
	if (!text || !*text || strlen(text) != json_string_length(value) ||
	    strlen(text) > SESSION_NAME_MAX)
		return error_field(err, "name", "name: give a text of 1 to %d bytes",
				   SESSION_NAME_MAX);
	if (session_named(s->all, s->caller->name, text)) {
		(void)error_field(err, "name", "name: there is a session with this name");
		err->code = ERROR_KEY_REUSED;
		return -EEXIST;
	}
	(void)snprintf(s->name, sizeof(s->name), "%s", text);
	return 0;
}

/* Only Python's runner can fork. What a workspace, or a policy without files, holds back would be in reach of a copy. */
static const char *sessions_fork_obstacle(const struct decision *d)
{
	if (strcmp(d->language->name, "python") != 0)
		return "only Python sessions can be forked";
	if (d->workspace || d->libraries_only)
		return "a session with a workspace, or without access to files, cannot be forked";
	if (d->network == NETWORK_ALLOW)
		return "a session that reaches other machines cannot be forked";
	if (d->facts->landlock_abi == 0)
		return "on this host Landlock is missing; see: atoll doctor";
	return NULL;
}

/* A session that can be forked has wider Landlock rules. So, unless it is asked for, not where a policy or a request wants them narrow. */
static int sessions_decide_forkable(struct session *s, const json_t *asked,
				    const struct decision *d, struct error *err)
{
	const char *obstacle = sessions_fork_obstacle(d);
	bool narrow = d->read_only || d->policy->required & (UINT32_C(1) << LAYER_LANDLOCK);

	if (asked && !json_is_boolean(asked) && !json_is_null(asked))
		return error_field(err, "forkable", "forkable: give true or false");
	if (json_is_true(asked) && obstacle)
		return error_field(err, "forkable", "forkable: %s", obstacle);
	s->made.forkable = json_is_boolean(asked) ? json_is_true(asked) : !obstacle && !narrow;
	return 0;
}

static int sessions_read_own_keys(struct session *s, const json_t *body, struct error *err)
{
	json_t *functions = json_object_get(body, "host_functions");
	json_t *rules = json_object_get(body, "rules");
	int r = sessions_read_idle_time(s, json_object_get(body, "idle_timeout"), err);

	if (r >= 0)
		r = sessions_read_name(s, json_object_get(body, "name"), err);
	if (r >= 0)
		r = session_check_functions(functions, err);
	if (r >= 0 && rules && !json_is_object(rules) && !json_is_null(rules))
		r = error_field(err, "rules", "rules: give an object");
	if (r < 0)
		return r;
	s->made.host_functions = json_is_array(functions) ? json_incref(functions) : NULL;
	s->made.rules = json_is_object(rules) ? json_incref(rules) : NULL;
	return 0;
}

static int sessions_refuse_key(const char *key, struct error *err)
{
	struct suggestion s = { 0 };

	if (knob_find(key))
		return error_field(err, key,
				   "%.64s: a session has no such key; did you mean 'limits.%s'?",
				   key, key);
	for (const char *const *k = own_keys; *k; k++)
		suggest_offer(&s, key, *k);
	for (const char *const *k = sandbox_keys; *k; k++)
		suggest_offer(&s, key, *k);
	if (s.best)
		return error_field(err, key, "%.64s: a session has no such key; did you mean '%s'?",
				   key, s.best);
	return error_field(err, key,
			   "%.64s: a session has no such key; GET /openapi.json lists those of "
			   "SessionRequest",
			   key);
}

static int sessions_read_body(struct session *s, json_t *body, struct error *err)
{
	const char *key;
	json_t *value;

	s->made.request = json_object();
	if (!s->made.request)
		return error_oom(err);
	json_object_foreach(body, key, value)
	{
		if (sessions_is_key(own_keys, key) || json_is_null(value))
			continue;
		if (!sessions_is_key(sandbox_keys, key))
			return sessions_refuse_key(key, err);
		if (json_object_set(s->made.request, key, value) < 0)
			return error_oom(err);
	}
	return sessions_read_own_keys(s, body, err);
}

/* What an execution in this session is, before its own limits. */
static int sessions_decide(struct session *s, const json_t *body, struct error *err)
{
	struct executor_run *run = NULL;
	const struct decision *d;
	int r = executor_open_session(s->all->o.executor, s->made.request, &run, err);

	if (r < 0)
		return r;
	d = executor_decision(run);
	s->made.limits = d->limits;
	(void)snprintf(s->made.language, sizeof(s->made.language), "%s", d->language->name);
	(void)snprintf(s->made.policy, sizeof(s->made.policy), "%s", d->policy->name);
	r = sessions_decide_forkable(s, json_object_get(body, "forkable"), d, err);
	if (r >= 0)
		r = session_decide_rules(s, d->policy->imports, err);
	executor_discard(run);
	return r;
}

struct session *session_new(struct sessions *all, const char *caller)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->all = all;
	s->refs = 1;
	s->caller = caller_get(all->o.callers, caller);
	if (!s->caller || session_watch_time(s) < 0)
		return session_unref(s);
	run_make_id(s->id, sizeof(s->id));
	memcpy(s->id, "se", 2);
	s->created_ns = clock_realtime_ns();
	s->clock.used_ns = clock_now_ns();
	s->clock.deadline_ns = INT64_MAX;
	s->kept = true;
	capture_init(&s->log.out, LOG_BYTES_MAX);
	capture_init(&s->log.err, LOG_BYTES_MAX);
	return s;
}

void session_enlist(struct session *s)
{
	struct sessions *all = s->all;

	s->next = all->list;
	all->list = s;
	all->counts.created++;
	charge_take(&s->charge, all->o.callers, s->caller, SLOT_SESSIONS, 1);
}

/* About the memory that a tree takes, whose depth its parser has bounded. */
static int64_t sessions_tree_bytes(json_t *value)
{
	int64_t n = 64 + (int64_t)json_string_length(value);
	const char *key;
	size_t i;
	json_t *part;

	json_object_foreach(value, key, part) n += (int64_t)strlen(key) + sessions_tree_bytes(part);
	json_array_foreach(value, i, part) n += sessions_tree_bytes(part);
	return n;
}

static int sessions_refuse_new(struct error *err)
{
	return error_set(err, ERROR_STOPPING, ESHUTDOWN,
			 "the server is stopping; try again when it is back");
}

/* A session without a sandbox. */
static int sessions_add(struct sessions *all, const char *caller, json_t *body,
			struct session **ret, struct error *err)
{
	const struct slot_demand demand = { SLOT_SESSIONS, 1, 5 };
	struct slot_demand tree = { SLOT_SESSION_BYTES, 0, 5 };
	struct session *s;
	int r;

	if (all->closed)
		return sessions_refuse_new(err);
	r = caller_check(all->o.callers, caller_find(all->o.callers, caller), demand, err);
	if (r < 0)
		return r;
	s = session_new(all, caller);
	if (!s)
		return error_oom(err);
	r = sessions_read_body(s, body, err);
	/* A copy of a session shares its tree; a session with copies lives as long as they do. */
	if (r >= 0) {
		tree.amount = sessions_tree_bytes(s->made.request);
		r = caller_check(all->o.callers, s->caller, tree, err);
	}
	if (r >= 0)
		charge_take(&s->made.held, all->o.callers, s->caller, tree.slot, tree.amount);
	if (r >= 0)
		r = sessions_decide(s, body, err);
	/* On a fiber, deciding may have waited. */
	if (r >= 0 && all->closed)
		r = sessions_refuse_new(err);
	if (r < 0) {
		(void)session_unref(s);
		return r;
	}
	session_enlist(s);
	/* Also a session whose first execution is refused expires. */
	session_set_due(s);
	*ret = s;
	return 0;
}

int session_create(struct sessions *all, const char *caller, json_t *body,
		   struct session_reply reply, struct error *err)
{
	struct session *s = NULL;
	int r = sessions_add(all, caller, body, &s, err);

	if (r < 0)
		return r;
	(void)session_ref(s);
	r = session_reset(s, reply, err);
	if (r < 0)
		session_close(s);
	(void)session_unref(s);
	return r;
}

int session_get(struct sessions *all, const char *caller, json_t *body, struct session **ret,
		struct error *err)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	struct session *s = session_named(all, caller, name);

	if (!s)
		return sessions_add(all, caller, body, ret, err);
	*ret = s;
	return 0;
}

/* --- finding --- */

int session_find(struct sessions *all, const char *caller, const char *id, struct session **ret,
		 struct error *err)
{
	for (struct session *s = all->list; s; s = s->next)
		if (strcmp(s->id, id) == 0 && sessions_is_shown(s, caller)) {
			*ret = s;
			return 0;
		}
	return error_set(err, ERROR_NOT_FOUND, ENOENT,
			 "there is no session %.40s; it has ended, or never was", id);
}

struct session *session_named(struct sessions *all, const char *caller, const char *name)
{
	for (struct session *s = all->list; s; s = s->next)
		if (strcmp(s->name, name) == 0 && sessions_is_of(s, caller))
			return s;
	return NULL;
}

/* --- as JSON --- */

static const char *session_state_word(const struct session *s)
{
	static const char *const words[] = {
		[SESSION_COLD] = "idle",	   [SESSION_STARTING] = "starting",
		[SESSION_INHERITING] = "starting", [SESSION_IDLE] = "idle",
		[SESSION_BUSY] = "busy",	   [SESSION_STOPPING] = "busy",
		[SESSION_MEASURING] = "busy",
	};

	return words[s->state];
}

json_t *session_to_json(const struct session *s)
{
	json_t *labels = json_object_get(s->made.request, "labels");
	int64_t left_ns = s->clock.used_ns + s->clock.idle_ms * NS_PER_MS - clock_now_ns();
	char created[32], expires[32];

	clock_format_utc(s->created_ns, created, sizeof(created));
	clock_format_utc(clock_realtime_ns() + MAX(left_ns, (int64_t)0), expires, sizeof(expires));
	return json_pack(
		"{s:s, s:s*, s:s, s:s, s:s?, s:s, s:s, s:f, s:I, s:I, s:o, s:o, s:o, s:b, s:s?}",
		"id", s->id, "name", *s->name ? s->name : NULL, "language", s->made.language,
		"state", session_state_word(s), "lost", s->remains.lost, "created_at", created,
		"expires_at", expires, "idle_timeout", (double)s->clock.idle_ms / MS_PER_SEC,
		"executions", (json_int_t)s->n_executions, "waiting", (json_int_t)s->line.n_open,
		"limits", limits_to_json(&s->made.limits), "labels",
		labels ? json_incref(labels) : json_object(), "isolation",
		isolation_to_json(&s->isolation), "forkable",
		s->made.forkable && session_has_proc(s), "parent",
		*s->made.parent ? s->made.parent : NULL);
}

json_t *sessions_to_json(struct sessions *all, const char *caller)
{
	json_t *list = json_array();

	for (const struct session *s = all->list; s; s = s->next)
		if (sessions_is_shown(s, caller))
			(void)json_array_append_new(list, session_to_json(s));
	return json_pack("{s:o}", "sessions", list);
}

json_t *session_logs(const struct session *s)
{
	struct result_stream streams[2] = { 0 };
	json_t *tree = NULL;

	if (capture_text(&s->log.out, &streams[0]) >= 0 &&
	    capture_text(&s->log.err, &streams[1]) >= 0)
		tree = json_pack("{s:o, s:o, s:b}", "stdout",
				 utf8_to_json(streams[0].text, streams[0].len, NULL), "stderr",
				 utf8_to_json(streams[1].text, streams[1].len, NULL), "truncated",
				 streams[0].truncated || streams[1].truncated);
	free(streams[0].text);
	free(streams[1].text);
	return tree;
}
