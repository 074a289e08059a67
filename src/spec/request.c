/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See request.h. One row a key of the request body (doc/http.md); a row names a shared reader with its member, or a
 * reader of its own. Keys of later steps have rows that refuse them by name, so no key is ignored silently.
 * Rules between keys are checked when all are read.
 */
#include "spec/request.h"

#include <string.h>

#include "base/address.h"
#include "base/path.h"
#include "base/utf8.h"
#include "spec/knob.h"
#include "spec/request-read.h"

enum { LANGUAGE_MAX = 64, HOST_PATH_MAX = 4000, LABEL_KEY_MAX = 64, LABEL_VALUE_MAX = 256 };

/*
 * A program's text. Some runtimes refuse a byte order mark or print it, so it is left out; none reads UTF-16, which begins with one, too.
 */
static int read_source(const struct reader *r, struct span *text)
{
	size_t mark = text->len > 0 ? utf8_mark(text->data, text->len) : 0;

	if (text->len >= 2 &&
	    (memcmp(text->data, "\xff\xfe", 2) == 0 || memcmp(text->data, "\xfe\xff", 2) == 0))
		return reader_refuse(r, "it is text in UTF-16; save it as UTF-8");
	text->data += mark;
	text->len -= mark;
	return 0;
}

static int read_code(const struct reader *r, const struct key_rule *rule, const json_t *value,
		     void *object)
{
	struct request *req = object;
	int e = request_read_bytes(r, value, &req->code);

	if (e < 0)
		return e;
	if (req->code.len > rule->max)
		return reader_refuse(r, "it has %zu bytes, more than the %zu allowed",
				     req->code.len, rule->max);
	return read_source(r, &req->code);
}

static int read_stdin(const struct reader *r, const struct key_rule *rule _unused_,
		      const json_t *value, void *object)
{
	struct request *req = object;

	return request_read_bytes(r, value, &req->stdin_data);
}

static int read_env(const struct reader *r, const struct key_rule *rule _unused_,
		    const json_t *value, void *object)
{
	struct request *req = object;
	struct var_list list;
	int e = request_read_env(r, value, &list);

	if (e < 0)
		return e;
	req->env = list.vars;
	req->n_env = list.n;
	return 0;
}

static int read_request_limits(const struct reader *r, const struct key_rule *rule _unused_,
			       const json_t *value, void *object)
{
	struct request *req = object;

	return limits_parse_at(r->field, value, &req->limits, &req->limits_set, r->err);
}

/* "pypi.org:443,*.debian.org" as a list. */
static int split_destinations(const struct reader *r, const char *text, const char ***ret)
{
	const char **list = arena_alloc(r->arena, (NETWORK_DESTINATIONS_MAX + 1) * sizeof(*list));
	bool more = list;

	for (size_t n = 0; more; n++) {
		const size_t len = strcspn(text, ",");
		struct destination destination;

		if (n == NETWORK_DESTINATIONS_MAX)
			return reader_refuse(r, "it names more than %d destinations",
					     NETWORK_DESTINATIONS_MAX);
		list[n] = arena_strndup(r->arena, text, len);
		if (!list[n])
			return reader_no_memory(r);
		if (destination_parse(list[n], &destination) < 0)
			return reader_refuse(r, "'%s' is no HOST, HOST:PORT, *.DOMAIN or *",
					     quote_text(list[n]).text);
		more = text[len] == ',';
		text += len + more;
	}
	*ret = list;
	return list ? 0 : reader_no_memory(r);
}

static int read_network(const struct reader *r, const struct key_rule *rule, const json_t *value,
			void *object)
{
	static const struct {
		const char *text;
		enum network_mode mode;
		bool prefix;
	} modes[] = {
		{ "off", NETWORK_OFF, false },	     { "none", NETWORK_NONE, false },
		{ "loopback", NETWORK_NONE, false }, { "host", NETWORK_HOST, false },
		{ "allow", NETWORK_ALLOW, false },   { "allow:", NETWORK_ALLOW, true },
	};
	struct request *req = object;
	const char *text;
	int e = read_string(r, value, rule->max, &text);

	if (e < 0)
		return e;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		size_t len = strlen(modes[i].text);

		if (strncmp(text, modes[i].text, len) != 0 || !text[len] == modes[i].prefix)
			continue;
		req->network = modes[i].mode;
		req->network_text = text;
		return modes[i].prefix
			       ? split_destinations(r, text + len, &req->network_destinations)
			       : 0;
	}
	return reader_refuse(r, "%s is not none, off, allow or allow:HOST:PORT,…",
			     quote_json(value).text);
}

static int read_image(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	static const char *const kernel_dirs[] = { "/proc", "/sys", "/dev" };
	const struct request *req = object;
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	if (req->image[0] != '/')
		return reader_refuse(r, "'%s' is not an absolute path",
				     quote_text(req->image).text);
	/* /proc/self/root would be the host's root. */
	for (size_t i = 0; i < ARRAY_SIZE(kernel_dirs); i++)
		if (path_is_below(req->image, kernel_dirs[i]))
			return reader_refuse(r, "'%s' is the kernel's, not an image",
					     quote_text(req->image).text);
	return 0;
}

bool request_is_workspace(const char *name)
{
	for (const char *c = name; c == name || *c; c++) {
		bool alnum = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
			     (*c >= 'A' && *c <= 'Z');

		if (!alnum && (c == name || !strchr("._-", *c)))
			return false;
	}
	return true;
}

static int read_workspace_name(const struct reader *r, const struct key_rule *rule,
			       const json_t *value, void *object)
{
	struct request *req = object;
	const char *name;
	int e = read_string(r, value, rule->max, &name);

	if (e < 0)
		return e;
	if (!request_is_workspace(name))
		return reader_refuse(r,
				     "'%s' is not a name: a letter or digit, then letters, "
				     "digits, . _ and -, %zu at most",
				     quote_text(name).text, rule->max);
	req->workspace = name;
	return 0;
}

/* "name", or {"name": "name", "cwd": true}. */
static int read_workspace(const struct reader *r, const struct key_rule *rule, const json_t *value,
			  void *object)
{
	static const struct key_rule rules[] = {
		{ .key = "name", .read = read_workspace_name, .max = REQUEST_WORKSPACE_MAX },
		{ .key = "cwd",
		  .read = read_bool,
		  .offset = offsetof(struct request, workspace_cwd) },
	};
	const struct request *req = object;
	int e;

	if (!json_is_object(value))
		return read_workspace_name(r, rule, value, object);
	e = read_object(r, value, KEY_TABLE(rules), object);
	if (e < 0)
		return e;
	return req->workspace ? 0 : reader_refuse(r, "it has no name");
}

static int read_history(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request *req = object;

	if (!json_is_boolean(value))
		return reader_refuse(r, "%s is not true or false", quote_json(value).text);
	req->no_history = json_is_false(value);
	return 0;
}

static int read_commit(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object)
{
	struct request *req = object;
	const char *text;
	int e = read_string(r, value, rule->max, &text);

	if (e < 0)
		return e;
	for (int when = 0; when < _COMMIT_WHEN_MAX; when++)
		if (strcmp(text, commit_when_name((enum commit_when)when)) == 0) {
			req->commit = (enum commit_when)when;
			return 0;
		}
	return reader_refuse(r, "%s is not always, on_success or never", quote_json(value).text);
}

static int read_entry(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const struct request *req = object;
	int e = read_text(r, rule, value, object);

	if (e < 0)
		return e;
	e = request_check_path(req->entry, strlen(req->entry), NULL);
	if (e < 0)
		return reader_refuse(r, "'%s' is not a relative file name without . and ..",
				     quote_text(req->entry).text);
	return 0;
}

static int read_labels(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	struct request *req = object;
	const char *key;
	const json_t *text;

	if (!json_is_object(value))
		return reader_refuse(r, "%s is not an object of texts, such as {\"job\": \"7\"}",
				     quote_json(value).text);
	if (json_object_size(value) > REQUEST_LABELS_MAX)
		return reader_refuse(r, "there are %zu labels, more than the %d allowed",
				     json_object_size(value), REQUEST_LABELS_MAX);
	json_object_foreach((json_t *)(uintptr_t)value, key, text)
	{
		struct reader at = reader_at(r, key);
		const char *ignored;
		int e = read_string(&at, text, LABEL_VALUE_MAX, &ignored);

		if (e < 0)
			return e;
		if (!*key || strlen(key) > LABEL_KEY_MAX)
			return reader_refuse(&at, "a label's name has 1 to %d bytes",
					     LABEL_KEY_MAX);
		/* ?label=NAME=VALUE could not find it. */
		if (strchr(key, '='))
			return reader_refuse(&at, "a label's name has no '='");
	}
	req->labels = value;
	return 0;
}

/*
 * A pattern that no file of the work directory can match, because a component is no component of a path below.
 */
static int check_glob(const struct reader *r, const char *pattern)
{
	const char *part = pattern;

	if (*part == '/')
		return reader_refuse(
			r, "'%s' is absolute; give a pattern relative to the work directory",
			quote_text(pattern).text);
	for (;; part++) {
		size_t len = strcspn(part, "/");

		if (len == 0)
			return reader_refuse(r, "'%s' has an empty part", quote_text(pattern).text);
		if (len <= 2 && strspn(part, ".") == len)
			return reader_refuse(r, "'%s' has the part '%.*s'",
					     quote_text(pattern).text, (int)len, part);
		part += len;
		if (!*part)
			return 0;
	}
}

static int read_globs(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const struct request *req = object;
	int e = read_words(r, rule, value, object);

	for (size_t i = 0; e == 0 && req->collect && req->collect[i]; i++) {
		struct reader at = reader_index(r, i);

		e = check_glob(&at, req->collect[i]);
	}
	return e;
}

static int refuse_calls(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value _unused_, void *object _unused_)
{
	return reader_refuse(r, "code calls functions of its client in a session only; start one "
				"with POST /v1/sessions");
}

/* A daemon removes these keys before it calls this reader. */
static int refuse_here(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value _unused_, void *object _unused_)
{
	return reader_refuse(r, "it needs a daemon; start one with `atoll serve`, or leave it out");
}

#define MEMBER(name) .offset = offsetof(struct request, name)

static const struct key_rule request_rules[] = {
	{ .key = "language", .read = read_text, MEMBER(language), .max = LANGUAGE_MAX },
	{ .key = "code", .read = read_code, .max = REQUEST_CODE_MAX },
	{ .key = "args",
	  .read = read_words,
	  MEMBER(args),
	  .max = REQUEST_WORD_MAX,
	  .max_count = REQUEST_ARGS_MAX },
	{ .key = "stdin", .read = read_stdin },
	{ .key = "env", .read = read_env },
	{ .key = "files", .read = request_read_files },
	{ .key = "limits", .read = read_request_limits },
	{ .key = "network", .read = read_network, .max = NETWORK_TEXT_MAX },
	{ .key = "policy", .read = read_text, MEMBER(policy), .max = HOST_PATH_MAX },
	{ .key = "read_only", .read = read_bool, MEMBER(read_only) },
	{ .key = "writable_root", .read = read_bool, MEMBER(writable_root) },
	{ .key = "image", .read = read_image, MEMBER(image), .max = HOST_PATH_MAX },
	{ .key = "mounts", .read = request_read_mounts },
	{ .key = "tty", .read = read_bool, MEMBER(tty) },
	{ .key = "merge_stderr", .read = read_bool, MEMBER(merge_stderr) },
	{ .key = "stages", .read = request_read_stages },
	{ .key = "tests", .read = request_read_tests },
	{ .key = "groups", .read = request_read_groups },
	{ .key = "stop_at", .read = request_read_stop_at, .max = REQUEST_TEST_NAME_MAX },
	{ .key = "interactor", .read = request_read_interactor },
	{ .key = "invoke", .read = request_read_invoke },
	{ .key = "entry", .read = read_entry, MEMBER(entry), .max = REQUEST_PATH_MAX },
	{ .key = "labels", .read = read_labels },
	{ .key = "collect",
	  .read = read_globs,
	  MEMBER(collect),
	  .max = REQUEST_PATH_MAX,
	  .max_count = REQUEST_GLOBS_MAX },
	{ .key = "preload",
	  .read = read_modules,
	  MEMBER(preload),
	  .max = MODULE_BYTES_MAX,
	  .max_count = REQUEST_PRELOAD_MAX },
	{ .key = "compiler_args",
	  .read = read_words,
	  MEMBER(compiler_args),
	  .max = REQUEST_COMPILER_ARG_MAX,
	  .max_count = REQUEST_COMPILER_ARGS_MAX },
	{ .key = "workspace", .read = read_workspace, .max = REQUEST_WORKSPACE_MAX },
	{ .key = "commit", .read = read_commit, .max = REQUEST_WORKSPACE_MAX },
	{ .key = "eval", .read = read_bool, MEMBER(eval) },
	{ .key = "history", .read = read_history },
	{ .key = "archive", .read = refuse_here },
	{ .key = "priority", .read = refuse_here },
	{ .key = "host_functions", .read = refuse_calls },
	{ .key = "callback_url", .read = refuse_here },
};

/* Of Judge0, Piston, E2B and other sandboxes. */
static const struct key_hint request_hints[] = {
	{ "lang", "language" },
	{ "language_id", "language, by name: \"python\"" },
	{ "version", "language: \"python@3.11\"" },
	{ "source", "code" },
	{ "source_code", "code" },
	{ "script", "code" },
	{ "program", "code" },
	{ "generated_code", "code; POST /execute takes generated_code" },
	{ "input", "stdin" },
	{ "cmd", "stages[].argv" },
	{ "command", "stages[].argv" },
	{ "command_line_arguments", "args, a list" },
	{ "compiler_options", "compiler_args, a list" },
	{ "expected_output", "tests: [{\"stdin\": …, \"expected\": …}]" },
	{ "additional_files", "files, or archive" },
	{ "env_vars", "env" },
	{ "environment", "env" },
	{ "cpu_time_limit", "limits.cpu_time" },
	{ "wall_time_limit", "limits.timeout" },
	{ "run_timeout", "limits.timeout: \"500ms\"" },
	{ "compile_timeout", "limits of a stage: stages[].limits.timeout" },
	{ "memory_limit", "limits.memory: \"64m\"" },
	{ "run_memory_limit", "limits.memory: \"64m\"" },
	{ "stack_limit", "limits.stack" },
	{ "max_file_size", "limits.file_size" },
	{ "max_processes_and_or_threads", "limits.pids" },
	{ "enable_network", "network" },
	{ "volumes", "files, or workspace for a directory that stays" },
	{ 0 },
};

/* Given with an effect: not null, false or an empty list or object. */
static bool is_given(const json_t *root, const char *key)
{
	const json_t *value = json_object_get(root, key);

	if (!value || json_is_null(value) || json_is_false(value))
		return false;
	if (json_is_array(value))
		return json_array_size(value) > 0;
	return !json_is_object(value) || json_object_size(value) > 0;
}

static int check_pairs(const struct reader *r, const json_t *root)
{
	static const char *const apart[][2] = {
		{ "tests", "stages" }, { "tests", "invoke" },  { "tests", "stdin" },
		{ "tests", "tty" },    { "stages", "invoke" }, { "invoke", "tty" },
		{ "eval", "tests" },   { "eval", "stages" },   { "eval", "invoke" },
		{ "eval", "tty" },     { "eval", "stdin" },    { "eval", "args" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(apart); i++) {
		struct reader at = reader_at(r, apart[i][0]);

		if (is_given(root, apart[i][0]) && is_given(root, apart[i][1]))
			return reader_refuse(&at, "it cannot be combined with %s", apart[i][1]);
	}
	return 0;
}

static int check_entry(const struct reader *r, struct request *req)
{
	struct reader at = reader_at(r, "entry");

	if (!req->entry || req->code.data)
		return 0;
	for (size_t i = 0; i < req->n_files; i++)
		if (strcmp(req->files[i].path, req->entry) == 0)
			return read_source(&at, &req->files[i].data);
	return reader_refuse(&at, "'%s' is not among files", quote_text(req->entry).text);
}

static int check_whole(const struct reader *r, struct request *req)
{
	struct reader args = reader_at(r, "args"), code = reader_at(r, "code");
	struct reader stages = reader_at(r, "stages");
	int e;

	while (req->args[req->n_args])
		req->n_args++;
	e = check_pairs(r, req->root);
	if (e < 0)
		return e;
	e = check_entry(r, req);
	if (e < 0)
		return e;
	if (req->n_stages > 0 && (req->code.data || req->entry))
		return reader_refuse(&stages,
				     "they would run instead of %s; make it a stage, or "
				     "one of files",
				     req->code.data ? "the code" : "the entry");
	if (!req->code.data && !req->entry && req->n_stages == 0)
		return reader_refuse(&code, "there is nothing to run; give code, entry or stages");
	if (req->invoke_method && !req->code.data && !req->entry)
		return reader_refuse(&code, "invoke needs the code that defines the class");
	e = request_check_words(&args, req->args, (struct var_list){ req->env, req->n_env });
	return e < 0 ? e : request_link_tests(r, req);
}

/* A program that judges is a request with few keys; where it runs and what it reads is not the caller's choice. */
int request_read_program(const struct reader *r, json_t *value, const char *const *args,
			 struct request **ret)
{
	static const struct key_rule rules[] = {
		{ .key = "language", .read = read_text, MEMBER(language), .max = LANGUAGE_MAX },
		{ .key = "code", .read = read_code, .max = REQUEST_CODE_MAX },
		{ .key = "files", .read = request_read_files },
		{ .key = "limits", .read = read_request_limits },
		{ .key = "compiler_args",
		  .read = read_words,
		  MEMBER(compiler_args),
		  .max = REQUEST_COMPILER_ARG_MAX,
		  .max_count = REQUEST_COMPILER_ARGS_MAX },
	};
	_cleanup_(request_cleanup) struct request *req = calloc(1, sizeof(*req));
	struct reader at = *r;
	int e;

	if (!req)
		return reader_no_memory(r);
	at.arena = &req->memory;
	req->root = json_incref(value);
	req->args = (const char **)(uintptr_t)args;
	req->n_args = _CHECKER_FILE_MAX;
	e = read_object(&at, value, KEY_TABLE(rules), req);
	if (e < 0)
		return e;
	if (!req->language || !req->code.data)
		return reader_refuse(r, "give language and code of the program that judges");
	for (size_t i = 0; i < req->n_files; i++)
		for (size_t k = 0; k < _CHECKER_FILE_MAX; k++)
			if (strcmp(req->files[i].path, checker_files[k]) == 0)
				return reader_refuse(r, "'%s' is the name of a file that it gets",
						     checker_files[k]);
	*ret = TAKE_PTR(req);
	return 0;
}

int request_parse(json_t *root, struct request **ret, struct error *err)
{
	_cleanup_(request_cleanup) struct request *req = calloc(1, sizeof(*req));
	struct reader r = { .err = err };
	int e;

	if (!req)
		return reader_no_memory(&r);
	r.arena = &req->memory;
	req->root = json_incref(root);
	req->args = arena_alloc(&req->memory, sizeof(*req->args));
	if (!req->args)
		return reader_no_memory(&r);
	if (!json_is_object(root))
		return reader_refuse(&r, "the request is %s, not an object", quote_json(root).text);
	e = read_object(
		&r, root,
		(struct key_table){ request_rules, ARRAY_SIZE(request_rules), request_hints }, req);
	if (e < 0)
		return e;
	e = check_whole(&r, req);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(req);
	return 0;
}

struct request *request_free(struct request *req)
{
	if (!req)
		return NULL;
	(void)request_free(req->interactor);
	for (size_t i = 0; i < req->n_tests; i++)
		if (i == 0 || req->tests[i].checker.program != req->tests[i - 1].checker.program)
			(void)request_free(req->tests[i].checker.program);
	json_decref(req->root);
	arena_done(&req->memory);
	free(req);
	return NULL;
}
