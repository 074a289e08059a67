/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See request.h. One row a key of the request body; a row names a shared reader with its member, or a reader of its own. Keys of
 * later steps have rows that refuse them by name, so no key is ignored silently. Rules between keys are checked when all are read.
 */
#include "spec/request.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/path.h"
#include "base/utf8.h"
#include "spec/request-read.h"

enum {
	LANGUAGE_MAX = 64,
	HOST_PATH_MAX = 4000,
	LABEL_KEY_MAX = 64,
	LABEL_VALUE_MAX = 256,
	STAGE_NAME_MAX = 63,
	INVOKE_NAME_MAX = 256,
};

/*
 * A program's text. Some runtimes refuse a byte order mark or print it, so it is left out; none reads UTF-16, which begins with one, too.
 */
static int request_check_source(const struct reader *r, struct span *text)
{
	size_t mark = text->len > 0 ? utf8_mark(text->data, text->len) : 0;

	if (text->len >= 2 &&
	    (memcmp(text->data, "\xff\xfe", 2) == 0 || memcmp(text->data, "\xfe\xff", 2) == 0))
		return reader_refuse(r, "it is text in UTF-16; save it as UTF-8");
	text->data += mark;
	text->len -= mark;
	return 0;
}

static int request_read_code(const struct reader *r, const struct schema_field *f,
			     const json_t *value, void *object)
{
	struct request *req = object;
	int e = request_read_bytes(r, f, value, object);

	if (e < 0)
		return e;
	if (req->code.len > f->max)
		return reader_refuse(r, "it has %zu bytes, more than the %zu allowed",
				     req->code.len, f->max);
	return request_check_source(r, &req->code);
}

/* "pypi.org:443,*.debian.org" as a list. */
static int request_split_destinations(const struct reader *r, const char *text, const char ***ret)
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

static int request_read_network(const struct reader *r, const struct schema_field *f,
				const json_t *value, void *object)
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
	int e = read_string(r, value, f->max, &text);

	if (e < 0)
		return e;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		size_t len = strlen(modes[i].text);

		if (strncmp(text, modes[i].text, len) != 0 || !text[len] == modes[i].prefix)
			continue;
		req->network = modes[i].mode;
		req->network_text = text;
		return modes[i].prefix ? request_split_destinations(r, text + len,
								    &req->network_destinations)
				       : 0;
	}
	return reader_refuse(r, "%s is not none, off, allow or allow:HOST:PORT,…",
			     quote_json(value).text);
}

static int request_read_image(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	static const char *const kernel_dirs[] = { "/proc", "/sys", "/dev" };
	const struct request *req = object;
	int e = read_text(r, f, value, object);

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

static int request_read_workspace_name(const struct reader *r, const struct schema_field *f,
				       const json_t *value, void *object)
{
	struct request *req = object;
	const char *name;
	int e = read_string(r, value, f->max, &name);

	if (e < 0)
		return e;
	if (!request_is_workspace(name))
		return reader_refuse(r,
				     "'%s' is not a name: a letter or digit, then letters, "
				     "digits, . _ and -, %zu at most",
				     quote_text(name).text, f->max);
	req->workspace = name;
	return 0;
}

#define MEMBER(name)	.offset = offsetof(struct request, name)
#define PAIR(name, two) MEMBER(name), .beside = offsetof(struct request, two)

static const struct schema_field workspace_fields[] = {
	{ "name", "string", NULL, request_read_workspace_name, .max = REQUEST_WORKSPACE_MAX },
	{ "cwd", "boolean", "the program starts in /workspace instead of /sandbox", read_bool,
	  MEMBER(workspace_cwd) },
	{ 0 },
};

/* "name", or {"name": "name", "cwd": true}. */
static int request_read_workspace(const struct reader *r, const struct schema_field *f,
				  const json_t *value, void *object)
{
	const struct request *req = object;
	int e;

	if (!json_is_object(value))
		return request_read_workspace_name(r, f, value, object);
	e = read_object(r, value, SHAPE_OF(workspace_fields), object);
	return e < 0 || req->workspace ? e : reader_refuse(r, "it has no name");
}

static int request_read_history(const struct reader *r, const struct schema_field *f _unused_,
				const json_t *value, void *object)
{
	struct request *req = object;

	if (!json_is_boolean(value))
		return reader_refuse(r, "%s is not true or false", quote_json(value).text);
	req->no_history = json_is_false(value);
	return 0;
}

static int request_read_entry(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	const struct request *req = object;
	int e = read_text(r, f, value, object);

	if (e < 0)
		return e;
	e = request_check_path(req->entry, strlen(req->entry), NULL);
	if (e < 0)
		return reader_refuse(r, "'%s' is not a relative file name without . and ..",
				     quote_text(req->entry).text);
	return 0;
}

static int request_read_labels(const struct reader *r, const struct schema_field *f _unused_,
			       const json_t *value, void *object)
{
	static const struct request_form form = { JSON_OBJECT,
						  "an object of texts, such as {\"job\": \"7\"}",
						  " labels", REQUEST_LABELS_MAX, 0 };
	struct request *req = object;
	const char *key;
	const json_t *text;
	void *unused;
	int e = request_room(r, value, &form, &unused);

	if (e < 0)
		return e;
	json_object_foreach((json_t *)(uintptr_t)value, key, text)
	{
		struct reader at = reader_at(r, key);
		const char *ignored;

		e = read_string(&at, text, LABEL_VALUE_MAX, &ignored);
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
static int request_check_glob(const struct reader *r, const char *pattern)
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

static int request_read_globs(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	const struct request *req = object;
	int e = read_words(r, f, value, object);

	for (size_t i = 0; e == 0 && req->collect && req->collect[i]; i++) {
		struct reader at = reader_index(r, i);

		e = request_check_glob(&at, req->collect[i]);
	}
	return e;
}

static int request_refuse_calls(const struct reader *r, const struct schema_field *f _unused_,
				const json_t *value _unused_, void *object _unused_)
{
	return reader_refuse(r, "code calls functions of its client in a session only; start one "
				"with POST /v1/sessions");
}

/* A daemon removes these keys before it calls this reader. */
static int request_refuse_here(const struct reader *r, const struct schema_field *f _unused_,
			       const json_t *value _unused_, void *object _unused_)
{
	return reader_refuse(r, "it needs a daemon; start one with `atoll serve`, or leave it out");
}

/* --- stages --- */

static int stage_read_name(const struct reader *r, const struct schema_field *f,
			   const json_t *value, void *object)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	struct request_stage *stage = object;
	int e = read_string(r, value, f->max, &stage->name);

	if (e < 0)
		return e;
	if (!*stage->name || stage->name[strspn(stage->name, letters)])
		return reader_refuse(r, "'%s' is not a stage name (letters, digits, _ . -)",
				     quote_text(stage->name).text);
	return 0;
}

#define STAGE_MEMBER(name)    .offset = offsetof(struct request_stage, name)
#define STAGE_PAIR(name, two) STAGE_MEMBER(name), .beside = offsetof(struct request_stage, two)
static const struct schema_field stage_fields[] = {
	{ "name", "string", "name of the entry in the result's stages [stage-N]", stage_read_name,
	  .max = STAGE_NAME_MAX },
	{ "code", "string",
	  "code of the request's language, in /sandbox/main-N.<ext>; a shell command if the "
	  "request names no language or bash",
	  read_text, STAGE_MEMBER(code), .max = REQUEST_CODE_MAX },
	{ "argv", "[string]", "a command, in every language; give code or argv", read_words,
	  STAGE_MEMBER(argv), .max = REQUEST_WORD_MAX, .max_count = REQUEST_ARGS_MAX },
	{ "stdin", "string or Encoded", "standard input", request_read_bytes,
	  STAGE_MEMBER(stdin_data) },
	{ "env", "{string}", "variables of this stage; they override those of the request",
	  request_read_env, STAGE_PAIR(env, n_env) },
	{ "limits", "Limits", "limits of this stage; they override those of the request",
	  read_limits, STAGE_PAIR(limits, limits_set) },
	{ 0 },
};

static int stage_read(const struct reader *r, const json_t *value, struct request_stage *stage,
		      size_t index)
{
	char name[32];
	int e = read_object(r, value, SHAPE_OF(stage_fields), stage);

	if (e < 0)
		return e;
	if (!stage->code == !stage->argv)
		return reader_refuse(r, "give exactly one of code and argv");
	if (stage->argv && (!stage->argv[0] || !*stage->argv[0]))
		return reader_refuse(r, "argv names no program");
	e = request_check_words(r, stage->argv, (struct var_list){ stage->env, stage->n_env });
	if (e < 0 || stage->name)
		return e;
	/* A stage without a name is named after its position. */
	(void)snprintf(name, sizeof(name), "stage-%zu", index + 1);
	stage->name = arena_strndup(r->arena, name, strlen(name));
	return stage->name ? 0 : reader_no_memory(r);
}

static int request_read_stages(const struct reader *r, const struct schema_field *f _unused_,
			       const json_t *value, void *object)
{
	static const struct request_form form = {
		JSON_ARRAY,
		"a list of stages, such as [{\"name\": \"build\", \"argv\": [\"make\"]}]",
		" stages", REQUEST_STAGES_MAX, sizeof(struct request_stage)
	};
	struct request *req = object;
	int e = request_room(r, value, &form, &req->stages);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		struct request_stage *stage = &req->stages[i];
		struct reader at = reader_index(r, i);

		e = stage_read(&at, json_array_get(value, i), stage, i);
		for (size_t k = 0; e == 0 && k < i; k++)
			if (strcmp(req->stages[k].name, stage->name) == 0)
				e = reader_refuse(&at, "the name '%s' is taken by another stage",
						  stage->name);
		req->n_stages = i + 1;
	}
	return e;
}

/* --- the method to call --- */

static int invoke_read_params(const struct reader *r, const struct schema_field *f _unused_,
			      const json_t *value, void *object)
{
	struct request *req = object;

	if (!json_is_object(value))
		return reader_refuse(r, "%s is not an object of names and values",
				     quote_json(value).text);
	req->invoke_params = value;
	return 0;
}

static const struct schema_field invoke_fields[] = {
	{ "class", "string", NULL, read_text, MEMBER(invoke_class), .max = INVOKE_NAME_MAX },
	{ "method", "string", NULL, read_text, MEMBER(invoke_method), .max = INVOKE_NAME_MAX },
	{ "params", "{any}", "arguments of the method by their names", invoke_read_params },
	{ 0 },
};

static int request_read_invoke(const struct reader *r, const struct schema_field *f _unused_,
			       const json_t *value, void *object)
{
	const struct request *req = object;
	int e = read_object(r, value, SHAPE_OF(invoke_fields), object);

	if (e < 0 || (req->invoke_class && req->invoke_method))
		return e;
	return reader_refuse(r, "class and method are both needed");
}

static int request_read_interactor(const struct reader *r, const struct schema_field *f _unused_,
				   const json_t *value, void *object)
{
	struct request *req = object;

	return request_read_program(r, (json_t *)(uintptr_t)value, interactor_files,
				    &req->interactor);
}

/* --- the tables --- */

static const struct schema_field program_fields[] = {
	{ "language", "string", "as of a request", read_text, MEMBER(language),
	  .max = LANGUAGE_MAX },
	{ "code", "string or Encoded", "its arguments: input.txt, output.txt, expected.txt",
	  request_read_code, MEMBER(code), .max = REQUEST_CODE_MAX },
	{ "files", "{string or FileContent}", "further files in its work directory",
	  request_read_files, PAIR(files, n_files) },
	{ "limits", "Limits", NULL, read_limits, PAIR(limits, limits_set) },
	{ "compiler_args", "[string]", NULL, read_words, MEMBER(compiler_args),
	  .max = REQUEST_COMPILER_ARG_MAX, .max_count = REQUEST_COMPILER_ARGS_MAX },
	{ 0 },
};

static const struct schema_field request_fields[] = {
	{ "language", "string",
	  "a name or alias of GET /v1/languages, or NAME@VERSION: python@3.11", read_text,
	  MEMBER(language), .max = LANGUAGE_MAX },
	{ "code", "string or Encoded", "the program", request_read_code, MEMBER(code),
	  .max = REQUEST_CODE_MAX },
	{ "args", "[string]", "arguments of the program", read_words, MEMBER(args),
	  .max = REQUEST_WORD_MAX, .max_count = REQUEST_ARGS_MAX },
	{ "stdin", "string or Encoded", "standard input", request_read_bytes, MEMBER(stdin_data) },
	{ "env", "{string}", "environment variables", request_read_env, PAIR(env, n_env) },
	{ "files", "{string or FileContent}", "the content of each path below /sandbox",
	  request_read_files, PAIR(files, n_files) },
	{ "limits", "Limits", NULL, read_limits, PAIR(limits, limits_set) },
	{ "network", "string",
	  "none (loopback and nothing else), off (no sockets but AF_UNIX), or the destinations to "
	  "reach, if the policy permits them: allow:HOST:PORT,… with *.DOMAIN and * (any public "
	  "address), or allow (all that the policy permits)",
	  request_read_network, .max = NETWORK_TEXT_MAX },
	{ "policy", "string", "a name of GET /v1/policies", read_text, MEMBER(policy),
	  .max = HOST_PATH_MAX },
	{ "workspace", "string or WorkspaceRequest",
	  "name of a persistent directory, shown at /workspace", request_read_workspace,
	  .max = REQUEST_WORKSPACE_MAX },
	{ "commit", "always|on_success|never", "when writes to the workspace are applied [always]",
	  read_choice, MEMBER(commit) },
	{ "read_only", "boolean", "only /tmp is writable", read_bool, MEMBER(read_only) },
	{ "writable_root", "boolean",
	  "the program may write anywhere; its changes end with the run", read_bool,
	  MEMBER(writable_root) },
	{ "image", "string", "a root directory of the host, where the operator allows it",
	  request_read_image, MEMBER(image), .max = HOST_PATH_MAX },
	{ "mounts", "{string}",
	  "directories of the host to show, where the policy permits them: {\"/data\": "
	  "\"/srv/data\"} read-only, {\"/out\": \"/srv/out:rw\"} with changes that are applied "
	  "at the end",
	  request_read_mounts },
	{ "tty", "boolean", "the program gets a terminal", read_bool, MEMBER(tty) },
	{ "merge_stderr", "boolean",
	  "both streams come as stdout, in the order of writing; stderr stays empty", read_bool,
	  MEMBER(merge_stderr) },
	{ "preload", "[string]", "modules to load before the program begins", read_modules,
	  MEMBER(preload), .max = MODULE_BYTES_MAX, .max_count = REQUEST_PRELOAD_MAX },
	{ "compiler_args", "[string]", "arguments of the compiler, after those of the language",
	  read_words, MEMBER(compiler_args), .max = REQUEST_COMPILER_ARG_MAX,
	  .max_count = REQUEST_COMPILER_ARGS_MAX },
	{ "stages", "[StageRequest]", "programs that run in order in one sandbox until one fails",
	  request_read_stages },
	{ "tests", "[TestRequest]", "each has a fresh run and a verdict", request_read_tests },
	{ "groups", "[GroupRequest]", "groups of tests, their needs and points",
	  request_read_groups },
	{ "stop_at", "first|group|never",
	  "which tests are skipped when one failed: all behind it, those of its group, none "
	  "[never]",
	  read_choice, MEMBER(stop_at) },
	{ "interactor", "ProgramChecker",
	  "talks to the program over its standard input and output, and judges it",
	  request_read_interactor },
	{ "history", "boolean",
	  "false: nothing of the execution is stored; not of jobs, and without Idempotency-Key",
	  request_read_history },
	{ "eval", "boolean",
	  "value and outputs of the result: the value of the last expression, charts and tables",
	  read_bool, MEMBER(eval) },
	{ "invoke", "InvokeRequest", "a method to call: the answer is in value",
	  request_read_invoke },
	{ "archive", "string", "tar, tar.gz or zip in base64, unpacked into /sandbox",
	  request_refuse_here },
	{ "entry", "string",
	  "the file of `files` to run; with code: the name under which the code is stored "
	  "[main.<ext>]",
	  request_read_entry, MEMBER(entry), .max = REQUEST_PATH_MAX },
	{ "labels", "{string}", "labels to search for", request_read_labels },
	{ "collect", "[string]", "patterns of files to keep [all files]", request_read_globs,
	  MEMBER(collect), .max = REQUEST_PATH_MAX, .max_count = REQUEST_GLOBS_MAX },
	{ "priority", "integer -10..10", "a job with a higher priority waits less [0]",
	  request_refuse_here },
	{ "callback_url", "string", "URL that gets the result by POST, if the operator allows it",
	  request_refuse_here },
	{ "host_functions", NULL, NULL, request_refuse_calls },
	{ 0 },
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

const struct schema request_shapes[] = {
	{ "ExecuteRequest", "A program to run.", request_fields, NULL, request_hints },
	{ "StageRequest", "One of several programs in one sandbox.", stage_fields },
	{ "TestRequest", "One test of a program.", request_test_fields },
	{ "GroupRequest", "Tests that stand together.", request_group_fields, "name" },
	{ "ToleranceChecker", "Numbers may differ a little.", request_tolerance_fields, "*" },
	{ "ProgramChecker", "A program that judges, in a sandbox of its own.", program_fields,
	  "language code" },
	{ "InvokeRequest", "A method to call instead of a program to run.", invoke_fields,
	  "class method" },
	{ "WorkspaceRequest", "A persistent directory, shown at /workspace.", workspace_fields,
	  "name" },
	{ "Encoded", "Bytes in base64.", request_encoded_fields, "*" },
	{ "FileContent", "A file, as text or in base64.", request_content_fields },
	{ 0 },
};

/* --- rules between keys --- */

/* Given with an effect: not null, false or an empty list or object. */
static bool request_has(const json_t *root, const char *key)
{
	const json_t *value = json_object_get(root, key);

	if (!value || json_is_null(value) || json_is_false(value))
		return false;
	if (json_is_array(value))
		return json_array_size(value) > 0;
	return !json_is_object(value) || json_object_size(value) > 0;
}

static int request_check_pairs(const struct reader *r, const json_t *root)
{
	static const char *const apart[][2] = {
		{ "tests", "stages" }, { "tests", "invoke" },  { "tests", "stdin" },
		{ "tests", "tty" },    { "stages", "invoke" }, { "invoke", "tty" },
		{ "eval", "tests" },   { "eval", "stages" },   { "eval", "invoke" },
		{ "eval", "tty" },     { "eval", "stdin" },    { "eval", "args" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(apart); i++) {
		struct reader at = reader_at(r, apart[i][0]);

		if (request_has(root, apart[i][0]) && request_has(root, apart[i][1]))
			return reader_refuse(&at, "it cannot be combined with %s", apart[i][1]);
	}
	return 0;
}

static int request_check_entry(const struct reader *r, struct request *req)
{
	struct reader at = reader_at(r, "entry");

	if (!req->entry || req->code.data)
		return 0;
	for (size_t i = 0; i < req->n_files; i++)
		if (strcmp(req->files[i].path, req->entry) == 0)
			return request_check_source(&at, &req->files[i].data);
	return reader_refuse(&at, "'%s' is not among files", quote_text(req->entry).text);
}

static int request_check_whole(const struct reader *r, struct request *req)
{
	struct reader args = reader_at(r, "args"), code = reader_at(r, "code");
	struct reader stages = reader_at(r, "stages");
	int e;

	while (req->args[req->n_args])
		req->n_args++;
	e = request_check_pairs(r, req->root);
	if (e < 0)
		return e;
	e = request_check_entry(r, req);
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
	_cleanup_(request_cleanup) struct request *req = calloc(1, sizeof(*req));
	struct reader at = *r;
	int e;

	if (!req)
		return reader_no_memory(r);
	at.arena = &req->memory;
	req->root = json_incref(value);
	req->args = (const char **)(uintptr_t)args;
	req->n_args = _CHECKER_FILE_MAX;
	e = read_object(&at, value, SHAPE_OF(program_fields), req);
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
	req->stop_at = STOP_NEVER;
	req->args = arena_alloc(&req->memory, sizeof(*req->args));
	if (!req->args)
		return reader_no_memory(&r);
	if (!json_is_object(root))
		return reader_refuse(&r, "the request is %s, not an object", quote_json(root).text);
	e = read_object(&r, root, &request_shapes[0], req);
	if (e == 0)
		e = request_check_whole(&r, req);
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
