/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `atoll run`. Most of them become keys of the request as they were written ("512m", a network mode): the library checks
 * them, so that the command line and the API refuse the same things with the same words.
 */
#include "atoll/commands/cmd-run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spec/request.h"

/* The request as far as flags make it. */
static json_t *run_overrides(struct run_options *o)
{
	if (!o->overrides)
		o->overrides = json_object();
	return o->overrides;
}

/* The object or list below key, created if absent. */
static json_t *json_below(json_t *object, const char *key, json_t *(*make)(void))
{
	if (!json_object_get(object, key))
		(void)json_object_set_new(object, key, make());
	return json_object_get(object, key);
}

struct name_value { /* NAME=value */
	char name[1024];
	const char *value;
};

static int split_pair(const struct option *self, const char *text, struct name_value *ret,
		      struct error *err)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return error_set(err, ERROR_INPUT, EINVAL, "%s wants %s, not '%.200s'", self->flag,
				 self->argument, text);
	if ((size_t)(equals - text) >= sizeof(ret->name))
		return error_set(err, ERROR_INPUT, EINVAL, "the name in %s is too long",
				 self->flag);
	memcpy(ret->name, text, (size_t)(equals - text));
	ret->name[equals - text] = '\0';
	ret->value = equals + 1;
	return 0;
}

/* A name alone takes the variable of this process, as with `docker run`. */
static int name_variable(const char *name, struct name_value *ret, struct error *err)
{
	if (snprintf(ret->name, sizeof(ret->name), "%s", name) >= (int)sizeof(ret->name))
		return error_set(err, ERROR_INPUT, EINVAL, "the name in --env is too long");
	ret->value = getenv(name);
	return ret->value ? 0
			  : error_set(err, ERROR_INPUT, EINVAL,
				      "--env wants K=V, or a variable that is set here, and "
				      "'%.200s' is not set",
				      name);
}

static int apply_env(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;
	struct name_value pair;
	int r = *value && !strchr(value, '=') ? name_variable(value, &pair, err)
					      : split_pair(self, value, &pair, err);

	return r < 0 ? r
		     : run_put_text(json_below(run_overrides(o), "env", json_object), pair.name,
				    pair.value, err);
}

static int apply_label(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;
	struct name_value pair;
	int r = split_pair(self, value, &pair, err);

	return r < 0 ? r
		     : run_put_text(json_below(run_overrides(o), "labels", json_object), pair.name,
				    pair.value, err);
}

/* A file without DEST keeps its own name. */
static int name_after(const char *path, struct name_value *ret, struct error *err)
{
	size_t end = strlen(path), start;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	if (end - start >= sizeof(ret->name))
		return error_set(err, ERROR_INPUT, EINVAL, "the name in --file is too long");
	memcpy(ret->name, path + start, end - start);
	ret->name[end - start] = '\0';
	ret->value = path;
	return 0;
}

static int apply_file(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;
	struct name_value pair = { .value = value };
	int r = strchr(value, '=') ? split_pair(self, value, &pair, err)
				   : name_after(value, &pair, err);

	/* `--file .` or `dir/.` has no name: the directory's files go into the work directory itself. */
	if (r == 0 && !strchr(value, '=') && strcmp(pair.name, ".") == 0)
		pair.name[0] = '\0';
	else if (r == 0)
		r = request_check_path(pair.name, strlen(pair.name), err);
	return r < 0 ? r
		     : host_tree_add(json_below(run_overrides(o), "files", json_object),
				     &(struct host_source){ .path = pair.value,
							    .dest = pair.name,
							    .progress = &o->progress },
				     err);
}

static int apply_stage(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;
	struct name_value pair;
	json_t *stage;
	int r = split_pair(self, value, &pair, err);

	if (r < 0)
		return r;
	if (!*pair.value)
		return error_set(err, ERROR_INPUT, EINVAL, "%s wants %s, not '%.200s'", self->flag,
				 self->argument, value);
	/* Not "code", which would be in the language that -l names. */
	stage = json_pack("{s:s, s:[s, s, s]}", "name", pair.name, "argv", "/bin/sh", "-c",
			  pair.value);
	if (json_array_append_new(json_below(run_overrides(o), "stages", json_array), stage) < 0)
		return error_set(err, ERROR_INPUT, EILSEQ, "'%.200s' is not UTF-8 text", value);
	return 0;
}

/* Appends to the list below key, which is created if absent. */
static int append_text(struct run_options *o, const char *key, const char *text, size_t n,
		       struct error *err)
{
	if (json_array_append_new(json_below(run_overrides(o), key, json_array),
				  json_stringn(text, n)) < 0)
		return error_set(err, ERROR_INPUT, EILSEQ, "'%.200s' is not UTF-8 text", text);
	return 0;
}

static int apply_collect(void *data, const struct option *self _unused_, const char *value,
			 struct error *err)
{
	return append_text(data, "collect", value, strlen(value), err);
}

static int apply_compiler_arg(void *data, const struct option *self _unused_, const char *value,
			      struct error *err)
{
	return append_text(data, "compiler_args", value, strlen(value), err);
}

/* --preload a,b --preload c -> "preload": ["a", "b", "c"] */
static int apply_preload(void *data, const struct option *self _unused_, const char *value,
			 struct error *err)
{
	int r = 0;

	for (struct span rest = span_of(value), module; r == 0 && span_split(&rest, ',', &module);)
		r = append_text(data, "preload", module.data, module.len, err);
	return r;
}

/* --network NONE -> "network": "none"; the key is the flag without its dashes. */
static int apply_text(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;

	return run_put_text(run_overrides(o), self->flag + 2, value, err);
}

/* The minimal tier is that of a policy. So that no policy is replaced by a weaker one unnoticed, only one of them may be given. */
static int apply_policy(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;
	const char *before = json_string_value(json_object_get(run_overrides(o), "policy"));
	bool is_tier = strcmp(self->flag, "--isolation") == 0;

	if (is_tier && strcmp(value, "minimal") != 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s '%.64s' is not minimal; leave it out for the full tier",
				 self->flag, value);
	if (before && is_tier != o->is_minimal && strcmp(before, value) != 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--isolation minimal and --policy %.64s: give one of them; a "
				 "policy file may say isolation: minimal",
				 is_tier ? before : value);
	o->is_minimal = is_tier;
	return run_put_text(run_overrides(o), "policy", value, err);
}

static int run_set_network(void *data, const struct option *self _unused_, const char *value,
			   struct error *err)
{
	struct run_options *o = data;

	return run_put_text(run_overrides(o), "network", value, err);
}

/* --read-only -> "read_only": true. */
static int apply_true(void *data, const struct option *self, const char *value _unused_,
		      struct error *err)
{
	struct run_options *o = data;
	char key[32];

	(void)snprintf(key, sizeof(key), "%s", self->flag + 2);
	for (char *c = key; *c; c++)
		if (*c == '-')
			*c = '_';
	return run_put(run_overrides(o), key, json_true(), err);
}

static int apply_no_history(void *data, const struct option *self _unused_,
			    const char *value _unused_, struct error *err)
{
	struct run_options *o = data;

	return run_put(run_overrides(o), "history", json_false(), err);
}

static int apply_discard(void *data, const struct option *self _unused_, const char *value _unused_,
			 struct error *err)
{
	struct run_options *o = data;

	return run_put_text(run_overrides(o), "commit", "never", err);
}

static int apply_image(void *data, const struct option *self, const char *value, struct error *err)
{
	struct run_options *o = data;
	_cleanup_free_ char *path = realpath(value, NULL);

	if (!path)
		return error_set(err, ERROR_INPUT, errno,
				 "%s '%.300s' cannot be opened (%s); give a directory that holds a "
				 "root file system (usr, bin, lib)",
				 self->flag, value, strerror(errno));
	if (strcmp(path, "/") == 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s '%.300s' is the host's own root; leave it out to see the "
				 "host's /usr, or give the root of another system",
				 self->flag, value);
	return run_put_text(run_overrides(o), "image", path, err);
}

/* SRC:DEST[:ro|:rw], as with `docker run`: without :ro the program's changes are applied at its end. */
static int run_set_mount(void *data, const struct option *self, const char *value,
			 struct error *err)
{
	struct run_options *o = data;
	const char *colon = strchr(value, ':'), *dest = colon ? colon + 1 : NULL;
	size_t n_dest = dest ? strcspn(dest, ":") : 0,
	       n_source = colon ? (size_t)(colon - value) : 0;
	_cleanup_free_ char *given = strndup(value, n_source), *path = NULL, *target = NULL;
	_cleanup_free_ char *source = NULL;

	if (n_source == 0 || n_dest == 0 ||
	    (dest[n_dest] && strcmp(dest + n_dest, ":ro") != 0 &&
	     strcmp(dest + n_dest, ":rw") != 0))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s wants SRC:DEST, or SRC:DEST:ro, not '%.200s'", self->flag,
				 value);
	path = given ? realpath(given, NULL) : NULL;
	target = strndup(dest, n_dest);
	if (!path || !target)
		return error_set(err, ERROR_INPUT, errno, "%s: cannot open '%.200s': %s",
				 self->flag, given ? given : value, strerror(errno));
	if (asprintf(&source, "%s%s", path, strcmp(dest + n_dest, ":ro") == 0 ? "" : ":rw") < 0)
		return error_oom(err);
	return run_put_text(json_below(run_overrides(o), "mounts", json_object), target, source,
			    err);
}

#define TEXT(flag, letter, argument, member, help)                                                 \
	OPTION_TEXT(flag, letter, argument, struct run_options, member, help)
#define SWITCH(flag, letter, member, help)                                                         \
	OPTION_SWITCH(flag, letter, struct run_options, member, help)

static const struct option run_rows[] = {
	{ "--language", 'l', "LANG", "the language [from the file's name or #! line]", apply_text,
	  0 },
	TEXT("--code", 'c', "CODE", code, "run this text"),
	SWITCH("--json", 0, json, "print the result object instead of the program's output"),
	{ "--env", 'e', "K=V", "set a variable (repeatable); K alone: as it is here", apply_env,
	  0 },
	{ "--file", 0, "[DEST=]SRC", "put a file or directory into the work directory (repeatable)",
	  apply_file, 0 },
	{ "--entry", 0, "PATH", "the file of a directory that is run [found by its name]",
	  apply_text, 0 },
	SWITCH("--with-dir", 0, with_dir, "bring the other files of FILE's directory"),
	SWITCH("--all", 0, all, "of a directory, also what its .gitignore files name"),
	TEXT("--output-dir", 0, "DIR", output_dir, "copy the files that the program wrote to DIR"),
	{ "--collect", 0, "GLOB", "keep only files that match GLOB (repeatable)", apply_collect,
	  0 },
	{ "--read-only", 0, NULL, "only /tmp is writable", apply_true, 0 },
	{ "--writable-root", 0, NULL,
	  "the program may write anywhere; its changes end with the run", apply_true, 0 },
	{ "--workspace", 0, "NAME", "a directory that stays, mounted at /workspace", apply_text,
	  0 },
	{ "--mount", 0, "SRC:DEST",
	  "a directory of the host, if the policy permits it; read-only with :ro (repeatable)",
	  run_set_mount, 0 },
	{ "--commit", 0, "WHEN",
	  "apply writes to the workspace: always (the default), on_success or never", apply_text,
	  0 },
	{ "--discard", 0, NULL, "apply nothing: --commit never", apply_discard, 0 },
	{ "--network", 0, "MODE",
	  "none (the default): only loopback; off: no sockets; allow:HOST:PORT,… (or allow:*): "
	  "those destinations, if the policy permits them",
	  run_set_network, 0 },
	{ "--policy", 0, "NAME|FILE", "the policy to run under [default]", apply_policy, 0 },
	{ "--isolation", 0, "TIER",
	  "minimal: weaker, without namespaces; the same as --policy minimal", apply_policy, 0 },
	{ "--image", 0, "DIR", "a root file system instead of the host's /usr", apply_image, 0 },
	{ "--stage", 0, "NAME=CMD", "run a shell command as a stage of its own (repeatable)",
	  apply_stage, 0 },
	{ "--eval", 0, NULL, "print the value of the last expression (Python, JavaScript)",
	  apply_true, 0 },
	TEXT("--invoke", 0, "CLASS.METHOD", invoke,
	     "call a method of a class that the code defines"),
	TEXT("--params", 0, "JSON", params, "arguments of the method, a JSON object"),
	TEXT("--tests", 0, "FILE", tests_file,
	     "judge against [{\"stdin\": …, \"expected\": …}, …]"),
	TEXT("--request", 0, "FILE", request_file,
	     "take a whole request body, JSON or YAML; flags win"),
	{ "--label", 0, "K=V", "give it a label (repeatable)", apply_label, 0 },
	{ "--preload", 0, "MODULES",
	  "start with these modules loaded, if that is faster (numpy,pandas)", apply_preload, 0 },
	{ "--compiler-arg", 0, "ARG",
	  "an additional argument of the compiler: -std=c++23 (repeatable)", apply_compiler_arg,
	  0 },
	{ "--tty", 't', NULL, "give the program a terminal", apply_true, 0 },
	{ "--merge-stderr", 0, NULL, "print both streams to stdout, in the order of writing",
	  apply_true, 0 },
	SWITCH("--explain", 0, explain, "print decision and plan, run nothing"),
	{ "--no-history", 0, NULL, "store nothing of this run, and bypass a running daemon",
	  apply_no_history, 0 },
	TEXT("--url", 0, "URL", url,
	     "run it in the daemon at this socket or http://ADDRESS:PORT [$ATOLL_URL]"),
	SWITCH("--no-daemon", 0, no_daemon, "bypass a running daemon"),
	SWITCH("--quiet", 'q', quiet,
	       "print no notice, of limits that were reached or of reduced isolation"),
};

const struct option *run_option(const char *flag)
{
	const struct option *row = run_rows;

	while (strcmp(row->flag, flag) != 0)
		row++;
	return row;
}

int run_limit(void *data, const struct knob *knob, const char *value, struct error *err)
{
	struct run_options *o = data;

	return run_put_text(json_below(run_overrides(o), "limits", json_object), knob->key, value,
			    err);
}

static int run_word(void *data, const char *word, struct error *err)
{
	struct run_options *o = data;

	if (o->file)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unexpected '%.200s'; words for the program go after --", word);
	o->file = word;
	return 0;
}

/* --- habits ------------------------------------------------------------------------------------------------------- */

static int accept_habit(void *data _unused_, const struct option *self _unused_,
			const char *value _unused_, struct error *err _unused_)
{
	return 0;
}

static int answer_habit(void *data, const struct option *self, const char *value,
			struct error *err);

/*
 * Options that people know from `docker run`. Those that mean the same here are accepted, and those that Atoll has another way for are
 * answered with that way. The help lists neither.
 */
static const struct habit {
	struct option option; /* first */
	const char *way;
} habits[] = {
	/* A sandbox is always removed, has a pid 1 and no capability, and standard input is always passed on. */
	{ { "--rm", 0, NULL, NULL, accept_habit, 0 }, NULL },
	{ { "--init", 0, NULL, NULL, accept_habit, 0 }, NULL },
	{ { "--cap-drop", 0, "NAME", NULL, accept_habit, 0 }, NULL },
	{ { "--interactive", 'i', NULL, NULL, accept_habit, 0 }, NULL },
	{ { "--volume", 'v', "SRC:DEST", NULL, run_set_mount, 0 }, NULL },
	{ { "--net", 0, "MODE", NULL, run_set_network, 0 }, NULL },
	{ { "--workdir", 'w', "DIR", NULL, answer_habit, 0 },
	  "a program starts in /sandbox; put its files there with --file DEST=SRC" },
	{ { "--publish", 'p', "PORTS", NULL, answer_habit, 0 },
	  "no port of a sandbox can be reached from outside" },
	{ { "--detach", 'd', NULL, NULL, answer_habit, 0 },
	  "start a daemon (atoll serve) and send the program to POST /v1/executions" },
	{ { "--user", 'u', "USER", NULL, answer_habit, 0 },
	  "every program is user 1000 of its own sandbox" },
	{ { "--name", 0, "NAME", NULL, answer_habit, 0 }, "name a run with --label name=NAME" },
	{ { "--entrypoint", 0, "PROGRAM", NULL, answer_habit, 0 },
	  "give the program as FILE or -c CODE, and its arguments after --" },
	{ { "--privileged", 0, NULL, NULL, answer_habit, 0 }, "no program gets a privilege" },
	{ { "--cap-add", 0, "NAME", NULL, answer_habit, 0 }, "no program gets a capability" },
	{ { "--gpus", 0, "GPUS", NULL, answer_habit, 0 }, "this version gives no GPU to programs" },
	{ { "--hostname", 0, "NAME", NULL, answer_habit, 0 },
	  "every sandbox has the same name, sandbox" },
	{ { "--env-file", 0, "FILE", NULL, answer_habit, 0 }, "give each variable with --env K=V" },
	{ { "--tmpfs", 0, "DIR", NULL, answer_habit, 0 },
	  "/tmp is in memory already; --disk SIZE bounds it" },
	{ { "--shm-size", 0, "SIZE", NULL, answer_habit, 0 },
	  "/dev/shm is as large as --memory SIZE" },
	{ { "--memory-swap", 0, "SIZE", NULL, answer_habit, 0 },
	  "give the swap space on top of --memory with --swap SIZE" },
	{ { "--pids-limit", 0, "N", NULL, answer_habit, 0 },
	  "the limit of processes and threads is --pids N" },
	{ { "--ulimit", 0, "NAME=N", NULL, answer_habit, 0 },
	  "the limits are --open-files N, --file-size SIZE, --stack SIZE and --cpu-time TIME" },
	{ { "--security-opt", 0, "WORD", NULL, answer_habit, 0 },
	  "the policy sets the confinement; `atoll doctor` shows what holds here" },
	{ { "--platform", 0, "NAME", NULL, answer_habit, 0 },
	  "programs run on this machine's processor" },
	{ { "--pull", 0, "WHEN", NULL, answer_habit, 0 },
	  "there are no images to fetch; --image DIR shows a root file system of yours" },
};

static int answer_habit(void *data _unused_, const struct option *self, const char *value _unused_,
			struct error *err)
{
	return error_set(err, ERROR_INPUT, EINVAL, "atoll run has no %s: %s", self->flag,
			 ((const struct habit *)self)->way);
}

static const struct option *run_habit(size_t i)
{
	return i < ARRAY_SIZE(habits) ? &habits[i].option : NULL;
}

const struct option_list run_option_list = { .rows = run_rows,
					     .n = ARRAY_SIZE(run_rows),
					     .more = run_habit,
					     .limit = run_limit,
					     .word = run_word,
					     .has_program = true };
