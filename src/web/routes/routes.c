/* SPDX-License-Identifier: Apache-2.0 */
/* See routes.h: joins the tables, creates and frees the API, holds what all handlers share. */
#include "web/routes/routes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "engine/text-file.h"
#include "mcp/mcp.h"
#include "run/executor.h"
#include "run/toolchain/registry.h"
#include "spec/knob.h"
#include "spec/result.h"
#include "web/codec/negotiate.h"
#include "web/routes/api-private.h"
#include "web/routes/openapi.h"
#include "web/routes/schema-table.h"

/* Seconds: from one warm run to the longest timeout. */
const double access_bounds[ACCESS_BOUNDS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
					      0.1,   0.5,    1,	    5,	  30,	 300 };

static const struct route *const tables[] = { run_routes,  batch_routes,   execution_routes,
					      host_routes, execute_routes, session_routes,
					      tool_routes, mcp_routes,	   runner_routes };

static void count_access(struct access_counts *counts, const struct access *access)
{
	double seconds = (double)access->duration_ns / NS_PER_SEC;
	size_t i = 0;

	while (i < ACCESS_BOUNDS && seconds > access_bounds[i])
		i++;
	counts->by_time[i]++;
	counts->seconds += seconds;
	counts->by_class[MIN(access->status / 100, ACCESS_STATUSES - 1)]++;
}

static void on_access(void *app, const struct access *access)
{
	struct api *api = app;
	const bool failed = access->status >= 500;

	count_access(&api->access, access);
	log_say(api->options.log, failed ? LOG_WARNING : LOG_DEBUG, "request",
		LOG_TEXT("method", access->method),
		LOG_BYTES("target", access->target.data, access->target.len),
		LOG_I64("status", access->status),
		LOG_TEXT("caller", access->principal ? access->principal->name : NULL),
		LOG_I64("body", (int64_t)access->body_bytes),
		LOG_I64("sent", (int64_t)access->sent_bytes),
		LOG_I64("duration_us", access->duration_ns / 1000));
}

/*
 * --- languages ---
 *
 * Those of the data directory, read once: names and aliases for POST /execute and filters, and the table of the tools. All texts are the
 * registry's.
 */

static int compare_names(const void *a, const void *b)
{
	const struct language *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* The tool `execute_code` lists its document's three languages first. */
static int tool_rank(const char *name)
{
	static const char *const first[] = { "python", "javascript", "bash" };
	int rank = 0;

	while (rank < (int)ARRAY_SIZE(first) && strcmp(first[rank], name) != 0)
		rank++;
	return rank;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct tool_language *x = a, *y = b;
	int order = tool_rank(x->name) - tool_rank(y->name);

	return order ? order : strcmp(x->name, y->name);
}

static void languages_free(struct api *api)
{
	api->registry = registry_free(api->registry);
	free(api->tools);
	free(api->sorted);
	free(api->languages);
}

const char *language_called(const struct api *api, const char *word)
{
	for (const struct language *const *l = api->sorted; word && *l; l++) {
		if (strcasecmp((*l)->name, word) == 0)
			return (*l)->name;
		for (const char *const *alias = (const char *const *)(*l)->known.aliases; *alias;
		     alias++)
			if (strcasecmp(*alias, word) == 0)
				return (*l)->name;
	}
	return word;
}

static int languages_load(struct api *api, struct error *err)
{
	const struct language *const *list = NULL;
	size_t n = 0, names = 0, at = 0;
	int r = registry_new(api->options.data_dir, &api->registry, err);

	if (r == 0)
		r = registry_list(api->registry, "", &list, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++, names++)
		for (const char **alias = list[i]->known.aliases; *alias; alias++)
			names++;
	api->sorted = calloc(n + 1, sizeof(*api->sorted));
	api->languages = calloc(names + 1, sizeof(*api->languages));
	api->tools = calloc(n + 1, sizeof(*api->tools));
	if (!api->sorted || !api->languages || !api->tools)
		return error_oom(err);
	/* In the order in which languages are shown to users. */
	for (size_t i = 0; i < n; i++)
		api->sorted[i] = list[i];
	qsort(api->sorted, n, sizeof(*api->sorted), compare_names);
	for (size_t i = 0; i < n; i++) {
		const struct language *l = api->sorted[i];
		const char *dot = strrchr(l->source, '.');

		api->languages[at++] = l->name;
		for (const char **alias = l->known.aliases; *alias; alias++)
			api->languages[at++] = *alias;
		api->tools[i] = (struct tool_language){ .name = l->name,
							.extension = dot ? dot + 1 : "",
							.has_sessions = *l->session,
							.names_files = l->class_pattern };
	}
	qsort(api->tools, n, sizeof(*api->tools), compare_ranks);
	return 0;
}

/*
 * --- the query ---
 *
 Refuses parameters of a query that an operation of ours does not have, and repeated ones that count once: they would do nothing,
 * without a word. Foreign interfaces (/execute, /mcp) are left alone: their clients may add what they like.
 */

static bool is_of(const struct api_parameter *p, const struct route *route)
{
	return strcmp(p->in, "query") == 0 && schema_lists(p->operations, route->operation);
}

static int refuse_parameter(const struct route *route, const char *name, struct error *err)
{
	const struct schema_field *f = NULL;
	struct suggestion s = { 0 };

	/* A key of the request, or one of its limits: the caller's body is JSON, which has them inside. */
	if (route->read_body)
		f = schema_find(&api_book, span_of(route->request_schema))->fields;
	while (f && f->key && strcmp(f->key, name) != 0)
		f++;
	if (f && (f->key || knob_find(name)))
		return error_field(err, name, "%.40s: write it into the JSON body%s", name,
				   knob_find(name) ? ", as a key of limits" : "");
	for (const struct api_parameter *p = api_parameters; p->operations; p++)
		if (is_of(p, route))
			suggest_offer(&s, name, p->name);
	return s.best ? error_field(err, name,
				    "%.40s: there is no such parameter; did you mean '%s'?", name,
				    s.best)
		      : error_field(err, name,
				    "%.40s: there is no such parameter; GET /openapi.json lists "
				    "those of %s",
				    name, route->operation);
}

/* As request_flag() reads it; other words would count as false. */
static bool is_flag(const char *value)
{
	static const char *const words[] = { "", "true", "1", "false", "0" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(value, words[i]) == 0)
			return true;
	return false;
}

static int query_check(const struct request_ctx *ctx, struct error *err)
{
	const struct route *route = request_route(ctx);
	const struct uri *uri = request_uri(ctx);

	/* Beside a program or a form, the query has keys of a request (upload.c). */
	if (strncmp(route->pattern, "/v1/", 4) != 0 ||
	    (route->read_body &&
	     !content_type_is(request_header(ctx, "content-type"), "application/json")))
		return 0;
	for (size_t i = 0; i < uri->n_pairs; i++) {
		const char *name = uri->pairs[i].name;
		const struct api_parameter *p = api_parameters;

		while (p->operations && (!is_of(p, route) || strcmp(p->name, name) != 0))
			p++;
		if (!p->operations)
			return refuse_parameter(route, name, err);
		if (p->type[0] != '[' && request_query(ctx, name) != uri->pairs[i].value)
			return error_field(err, name, "%.40s: give it once.", name);
		if (strcmp(p->type, "boolean") == 0 && !is_flag(uri->pairs[i].value))
			return error_field(err, name, "%.40s: give true or false.", name);
	}
	return 0;
}

/* --- the API --- */

static int mcp_open(struct api *api, struct error *err)
{
	const struct api_options *o = &api->options;
	const struct mcp_options options = {
		.loop = o->loop,
		.engine = o->engine,
		.executor = o->executor,
		.sessions = o->sessions,
		.callers = o->callers,
		.log = o->log,
		.languages = api->tools,
		.timeout_max = o->execute.timeout_max,
		.tool_limits = &o->tool_limits,
		.tables = o->mcp_tables,
	};

	return mcp_new(&options, &api->mcp, err);
}

int api_new(const struct api_options *options, struct api **ret, struct error *err)
{
	struct api *api = calloc(1, sizeof(*api));
	struct server_config config = {
		.loop = options->loop,
		.router = { tables, ARRAY_SIZE(tables) },
		.auth = options->auth,
		.limits = options->limits,
		.callers = options->callers,
		.app = api,
		.judge_query = query_check,
		.on_access = on_access,
	};
	int r;

	if (!api)
		return error_oom(err);
	api->options = *options;
	api->engine = options->engine;
	api->executor = options->executor;
	api->sessions = options->sessions;
	api->router = config.router;
	r = languages_load(api, err);
	if (r == 0)
		r = mcp_open(api, err);
	if (r == 0 && server_new(&config, &api->server) < 0)
		r = error_oom(err);
	if (r < 0) {
		(void)api_free(api);
		return r;
	}
	*ret = api;
	return 0;
}

struct api *api_free(struct api *api)
{
	if (!api)
		return NULL;
	api->server = server_free(api->server);
	api->mcp = mcp_free(api->mcp);
	questions_free(api);
	free(api->openapi);
	languages_free(api);
	free(api);
	return NULL;
}

int api_listen(struct api *api, struct listener listener)
{
	return server_listen(api->server, listener);
}

void api_set_auth(struct api *api, const struct auth_rules *auth)
{
	server_set_auth(api->server, auth);
}

void api_drain(struct api *api)
{
	mcp_drain(api->mcp);
	server_drain(api->server);
}

bool api_is_idle(const struct api *api)
{
	struct server_stats stats;

	server_stats(api->server, &stats);
	return stats.queue_bytes == 0 && stats.on_fibers == 0 && stats.arriving == 0;
}

const char *request_viewer(const struct request_ctx *ctx)
{
	const struct principal *principal = request_principal(ctx);

	return principal->uid == (uid_t)-1 ? principal->name : NULL;
}

bool request_flag(const struct request_ctx *ctx, const char *name)
{
	const char *value = request_query(ctx, name);

	return value && (*value == '\0' || strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

int request_other_form(struct request_ctx *ctx, struct other_form other, bool *ret)
{
	const char *const types[] = { "application/json", other.media, NULL };
	const char *word = request_query(ctx, "format");

	if (word && strcmp(word, other.word) != 0 && strcmp(word, "json") != 0) {
		(void)respond_field(ctx, "format", "format: give %s or json.", other.word);
		return -EINVAL;
	}
	*ret = word ? strcmp(word, "json") != 0 : request_accepts(ctx, types) == other.media;
	return 0;
}

int respond_asked(struct request_ctx *ctx, engine_question *ask)
{
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	json_t *tree = NULL;
	int r = ask(api->engine, request_viewer(ctx), request_param(ctx, "id"), &tree, &err);

	return r < 0 ? respond_error(ctx, &err) : respond_tree(ctx, 200, tree);
}

int respond_tree(struct request_ctx *ctx, int status, json_t *root)
{
	const json_t *value = json_object_get(root, "value");
	/* A program's value prints every digit. A comparison of two results without a value has none. */
	const bool no_value = json_is_null(json_object_get(value, "a")) &&
			      json_is_null(json_object_get(value, "b"));
	/* On a fiber if the route may have a large answer. */
	char *text = root ? text_dump(root, result_json_flags(no_value ? NULL : root)) : NULL;

	json_decref(root);
	return respond_take(ctx, status, "application/json", text, text ? strlen(text) : 0);
}
