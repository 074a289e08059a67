/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See front.h. Each part gets its own option struct, filled from the settings here: the parts do not know the
 * settings. Parts are made bottom up and closed top down.
 *
 *   sockets ─▶ api (HTTP) ─▶ sessions ─▶ engine (executions) ─┬▶ history (SQLite, outputs)
 *                                                           └▶ executor (runs) ─▶ broker
 */
#include "atoll/daemon/front.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/caller.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "engine/engine.h"
#include "engine/history/history.h"
#include "session/session.h"
#include "spec/knob.h"
#include "web/routes/routes.h"

struct front_parts {
	struct callers callers; /* shared by api and engine: one account for each caller */
	struct history *history;
	struct engine *engine;
	struct sessions *sessions;
	struct api *api;
	struct access_token tokens[CONFIG_WORDS_MAX];
	char history_dir[4096];
	char node[65];
	char challenge[1024]; /* of a refusal for want of a token; "": the usual one */
};

/* The server owns the sockets afterwards. */
static int serve_sockets(struct front *f, struct error *err)
{
	const bool guarded = f->tokens[0] && !f->config.access.unauthenticated;
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->sockets.n; i++) {
		struct listening_socket *listening = &f->sockets.list[i];
		const bool is_unix = listening->name[0] == '/';
		/* The port of the NeMo Agent Toolkit's clients. */
		const char *port = strrchr(listening->name, ':'),
			   *compat = strrchr(CONFIG_LISTEN_COMPAT, ':');
		struct listener listener = { TAKE_FD(listening->fd),
					     is_unix ? LISTENER_UNIX : LISTENER_TCP,
					     guarded && !is_unix,
					     !is_unix && port && strcmp(port, compat) == 0 };

		r = api_listen(f->parts->api, listener);
	}
	listening_close(&f->sockets);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot serve: %s", strerror(-r)) : 0;
}

static void on_broker(void *data, bool up)
{
	struct front *f = data;
	struct error err = { 0 };

	log_say(&f->log, up ? LOG_INFO : LOG_WARNING,
		up ? "the broker answers" : "the broker is lost");
	engine_on_broker(f->parts->engine, up);
	/*
	 * Clients are accepted once a broker can run what they ask for: until then they wait in the sockets' queues. So the
	 * client whose connection made systemd start the daemon is not refused.
	 */
	if (up && f->sockets.n > 0 && serve_sockets(f, &err) < 0)
		log_say(&f->log, LOG_ERROR, err.text);
	else if (up)
		front_is_ready(f);
}

/* Logs once which presets are asked for and not available. */
static void note_presets(struct front *f, const struct presets *all)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct preset *p = &all->list[i];

		if (!*p->language)
			log_say(&f->log, LOG_WARNING,
				"language_config: there is no such language; the entry has no "
				"effect",
				LOG_TEXT("language", p->name));
		else if (*p->version)
			log_say(&f->log, LOG_WARNING,
				"language_config: the entry counts for this version only, not for "
				"the language",
				LOG_TEXT("language", p->name), LOG_TEXT("of", p->language),
				LOG_TEXT("version", p->version));
		if (p->allow_network)
			log_say(&f->log, LOG_WARNING,
				"language_config: allow_network has no effect, a request asks for "
				"its network itself",
				LOG_TEXT("language", p->name));
	}
}

static int open_service(struct front *f, struct error *err)
{
	const struct config *c = &f->config;
	struct presets presets = { .n = 0 };
	const struct executor_options options = {
		.data_dir = c->places.data_dir,
		.policies_dir = *c->places.policies_dir ? c->places.policies_dir : NULL,
		.cache_dir = NULL, /* HOME is the state directory */
		.pool = f->broker_path,
		.front = f->kind,
		.defaults = &c->limits.defaults,
		.defaults_set = c->limits.defaults_set,
		.network = c->network,
		.ceilings = &c->limits.ceilings,
		.ceilings_set = c->limits.ceilings_set,
		.presets = c->languages.text ? &presets : NULL,
		.images = c->places.images,
		.on_broker = on_broker,
		.data = f,
	};

	int r = c->languages.text ? config_presets(c, &presets, err) : 0;

	if (r == 0)
		r = executor_new(f->loop, &options, &f->executor, err);
	if (r == 0)
		note_presets(f, &presets);
	return r;
}

static int open_history(struct front *f, struct error *err)
{
	const struct config *c = &f->config;
	struct front_parts *p = f->parts;
	const struct history_options options = {
		.dir = p->history_dir,
		.node = p->node,
		.full = c->history.durability == DURABILITY_FULL,
		.retain_s = c->history.age_ms / MS_PER_SEC,
		.retain_rows = c->history.count,
		.retain_bytes = c->history.bytes,
		.keep_keys_s = c->history.idempotency_ms / MS_PER_SEC,
	};

	if (gethostname(p->node, sizeof(p->node) - 1) < 0)
		p->node[0] = '\0';
	(void)snprintf(p->history_dir, sizeof(p->history_dir), "%s/history", c->places.state_dir);
	return history_open(&options, &p->history, err);
}

static int open_engine(struct front *f, struct error *err)
{
	const struct config *c = &f->config;
	const struct engine_options options = {
		.loop = f->loop,
		.runner = executor_runner(f->executor),
		.history = f->parts->history,
		.node = f->parts->node,
		.log = &f->log,
		.audit = &f->audit,
		.unpacker_fd = f->unpacker_fd,
		.callers = &f->parts->callers,
		.running_max = c->queue.running,
		.judging_max = c->queue.judging,
		.queue_max = c->queue.max,
		.queue_per_caller = c->queue.per_caller,
		.queue_bytes = c->queue.bytes,
		.queue_bytes_per_caller = c->queue.bytes_per_caller,
		.full = c->history.durability == DURABILITY_FULL,
		.callbacks = c->callback.allow,
		.callback_hosts = c->callback.hosts,
		.callback_secrets = c->callback.secrets,
		.callback_timeout_ms = c->callback.timeout_ms,
		.callback_attempts = c->callback.attempts,
		.alert_count = c->audit.alert_count,
		.alert_window_ms = c->audit.alert_window_ms,
		.adaptive_factor_milli = c->adaptive.factor_milli,
		.adaptive_min_ms = c->adaptive.min_ms,
		/* With tokens, each caller has a workspace of its own. */
		.shared_workspace = *c->access.token_file ? NULL : CONFIG_EXECUTE_WORKSPACE,
	};

	return engine_new(&options, &f->parts->engine, err);
}

static int open_sessions(struct front *f, struct error *err)
{
	const struct sessions_options options = {
		.loop = f->loop,
		.executor = f->executor,
		.engine = f->parts->engine,
		.callers = &f->parts->callers,
		.log = &f->log,
		.max = f->config.sessions.max,
		.max_per_caller = f->config.sessions.per_caller,
		.host_calls = f->config.sessions.host_calls,
	};

	return sessions_new(&options, &f->parts->sessions) < 0 ? error_oom(err) : 0;
}

/* Tokens have no names in their file, so a caller is named by the beginning of its token's hash. */
static int make_auth(struct front *f, struct auth_rules *ret)
{
	struct front_parts *p = f->parts;
	size_t n = 0;

	for (; f->tokens[n] && n < CONFIG_WORDS_MAX; n++) {
		char text[CONFIG_TOKEN_MAX + 1];
		size_t len = strcspn(f->tokens[n], " ");
		int r;

		(void)snprintf(text, sizeof(text), "%.*s", (int)len, f->tokens[n]);
		r = token_init(&p->tokens[n], "unnamed", text);
		if (r < 0)
			return r;
		p->tokens[n].is_operator = strcmp(f->tokens[n] + len, CONFIG_OPERATOR_MARK) == 0;
		(void)snprintf(p->tokens[n].name, sizeof(p->tokens[n].name), "%.12s",
			       p->tokens[n].hash);
	}
	*ret = (struct auth_rules){
		.tokens = p->tokens,
		.n_tokens = n,
		.allow_hosts = f->config.access.hosts,
		.allow_origins = f->config.access.origins,
		.uid = geteuid(),
		.challenge = *p->challenge ? p->challenge : NULL,
	};
	return 0;
}

static struct server_limits make_limits(const struct config *c)
{
	struct server_limits limits = server_limits_default();

	limits.body_max_bytes = c->http.body_bytes_max;
	limits.body_total_bytes = MAX(limits.body_total_bytes, 2 * c->http.body_bytes_max);
	limits.connections = (uint32_t)c->http.connections_max;
	limits.head_ms = c->http.header_ms;
	limits.body_idle_ms = c->http.body_ms;
	limits.idle_ms = c->http.idle_ms;
	limits.write_stall_ms = c->http.write_ms;
	return limits;
}

/*
 * doc/http.md: generous limits, within the host's resources and the administrator's ceilings; policies/execute.yaml
 * has the rest.
 */
static struct execute_options make_execute(const struct config *c)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	const int64_t host_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	const struct limits *most = &c->limits.ceilings;
	const bool bounded = c->limits.ceilings_set & knob_bit(knob_find("memory"));

	return (struct execute_options){
		.all_languages = c->languages.execute == EXECUTE_ALL,
		.timeout_max = (double)most->timeout_ms / MS_PER_SEC,
		.memory_bytes = execute_memory(host_bytes, bounded ? most->memory_bytes : 0),
		.cpus = MIN((double)cores, (double)most->cpus_milli / 1000),
		.pids = MIN(EXECUTE_PIDS, most->pids),
		.output_bytes = MIN(EXECUTE_OUTPUT_BYTES, most->output_bytes),
		.disk_bytes = MIN(EXECUTE_DISK_BYTES, most->disk_bytes),
		.files = MIN(EXECUTE_FILES, most->files),
		.workspace = CONFIG_EXECUTE_WORKSPACE,
		.policy = EXECUTE_POLICY,
	};
}

/* The operator's defaults replace Codomyrmex's, too. */
static struct tool_limits make_tool_limits(const struct config *c)
{
	const struct limits *given = &c->limits.defaults;
	struct tool_limits l = { 0 };

	if (c->limits.defaults_set & knob_bit(knob_find("memory")))
		l.memory_bytes = given->memory_bytes;
	if (c->limits.defaults_set & knob_bit(knob_find("cpus")))
		l.cpus = (double)given->cpus_milli / 1000;
	if (c->limits.defaults_set & knob_bit(knob_find("pids")))
		l.pids = given->pids;
	if (c->limits.defaults_set & knob_bit(knob_find("timeout")))
		l.timeout = (double)given->timeout_ms / MS_PER_SEC;
	return l;
}

/* RFC 9728: the metadata of https://HOST/PATH is at https://HOST/.well-known/oauth-protected-resource/PATH. */
static void make_challenge(struct front *f)
{
	const char *resource = f->config.mcp.resource;
	const char *host = strstr(resource, "://");
	size_t n = host ? strcspn(host + 3, "/") + (size_t)(host + 3 - resource) : 0;

	if (n > 0 && f->config.mcp.issuers[0])
		(void)snprintf(f->parts->challenge, sizeof(f->parts->challenge),
			       "Bearer resource_metadata=\"%.*s" API_RESOURCE_PATH "%.400s\"",
			       (int)MIN(n, (size_t)400), resource, resource + n);
}

static int open_api(struct front *f, struct error *err)
{
	struct api_options options = {
		.loop = f->loop,
		.engine = f->parts->engine,
		.executor = f->executor,
		.sessions = f->parts->sessions,
		.log = &f->log,
		.limits = make_limits(&f->config),
		.callers = &f->parts->callers,
		.execute = make_execute(&f->config),
		.tool_limits = make_tool_limits(&f->config),
		.data_dir = f->config.places.data_dir,
		.mcp_tables = front_mcp_tables,
		.mcp_resource = f->config.mcp.resource,
		.mcp_issuers = f->config.mcp.issuers,
	};
	int r;

	make_challenge(f);
	r = make_auth(f, &options.auth);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the tokens cannot be used");
	return api_new(&options, &f->parts->api, err);
}

int front_open(struct front *f, struct error *err)
{
	int r;

	f->parts = calloc(1, sizeof(*f->parts));
	if (!f->parts)
		return error_oom(err);
	r = open_service(f, err);
	if (r == 0)
		r = open_history(f, err);
	if (r == 0)
		r = open_engine(f, err);
	if (r == 0)
		r = open_sessions(f, err);
	if (r == 0)
		r = open_api(f, err);
	return r;
}

void front_close(struct front *f)
{
	struct front_parts *p = f->parts;

	p->api = api_free(p->api);
	/* Runs that did not end in time end with the process; the files on disk are valid at any time. */
	if (executor_count(f->executor) > 0 || fiber_count() > 0)
		return;
	p->sessions = sessions_free(p->sessions);
	p->engine = engine_free(p->engine);
	p->history = history_close(p->history);
	f->executor = executor_free(f->executor);
	free(p);
	f->parts = NULL;
}

void front_reload(struct front *f)
{
	struct auth_rules auth;

	if (make_auth(f, &auth) < 0) {
		log_say(&f->log, LOG_ERROR, "the tokens cannot be used");
		return;
	}
	api_set_auth(f->parts->api, &auth);
	log_say(&f->log, LOG_INFO, "settings were read again");
}

void front_drain(struct front *f)
{
	api_drain(f->parts->api);
	sessions_drain(f->parts->sessions);
	engine_drain(f->parts->engine);
}

bool front_is_idle(const struct front *f)
{
	/* The question for a runtime's version may still run after its client has gone. */
	return engine_is_idle(f->parts->engine) && api_is_idle(f->parts->api) && fiber_count() == 0;
}

void front_interrupt(struct front *f)
{
	executor_kill_all(f->executor, CAUSE_INTERRUPTED);
	engine_interrupt(f->parts->engine);
}
