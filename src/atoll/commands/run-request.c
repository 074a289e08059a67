/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options and files to a request body. A flag wins over the same key of --request; maps (env, files, labels, limits) are joined key
 * by key.
 */
#include "atoll/commands/cmd-run.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/utf8.h"
#include "spec/request.h"
#include "spec/yaml.h"

enum { SAMPLE_MAX = 256 };

int run_put(json_t *object, const char *key, json_t *value, struct error *err)
{
	return json_object_set_new(object, key, value) < 0 ? error_oom(err) : 0;
}

int run_put_text(json_t *object, const char *key, const char *text, struct error *err)
{
	if (json_object_set_new(object, key, json_string(text)) < 0)
		return error_set(err, ERROR_INPUT, EILSEQ, "'%.200s' is not UTF-8 text", text);
	return 0;
}

static int load_tree(const char *path, json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	struct document doc;
	size_t start;
	int r;

	buf_init(&text, 0);
	r = host_file_read(path, YAML_BYTES_MAX * 16, &text, err);
	if (r < 0)
		return r;
	doc = (struct document){ .name = path, .text = text.data ?: "", .len = text.len };
	start = strspn(doc.text, " \t\r\n");
	if (doc.text[start] == '{' || doc.text[start] == '[')
		return json_parse(&doc, ret, err);
	return yaml_parse(&doc, ret, err);
}

/* Members of overrides replace those of the request; objects one level down are joined. */
static int merge_overrides(json_t *request, json_t *overrides, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(overrides, key, value)
	{
		json_t *there = json_object_get(request, key);
		int r;

		if (json_is_object(value) && json_is_object(there))
			r = json_object_update(there, value);
		else
			r = json_object_set(request, key, value);
		if (r < 0)
			return error_oom(err);
	}
	return 0;
}

/* The argv of the last stage if it is a shell command, whose $1 and so on are the words after --; NULL: it is not. */
static json_t *shell_words(const json_t *request)
{
	const json_t *stages = json_object_get(request, "stages");
	const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
	json_t *argv = json_object_get(last, "argv");
	const char *shell = json_string_value(json_array_get(argv, 0));

	return shell && strcmp(shell, "/bin/sh") == 0 && json_array_size(argv) == 3 ? argv : NULL;
}

static int add_request_words(json_t *request, char *const *words, struct error *err)
{
	json_t *args = shell_words(request);

	if (!*words)
		return 0;
	if (args && json_array_append_new(args, json_string("sh")) < 0)
		return error_oom(err);
	if (!args) {
		args = json_array();
		if (json_object_set_new(request, "args", args) < 0)
			return error_oom(err);
	}
	for (; *words; words++)
		if (json_array_append_new(args, json_string(*words)) < 0)
			return error_set(err, ERROR_INPUT, EILSEQ,
					 "the argument '%.200s' is not UTF-8 text", *words);
	return 0;
}

/* "Class.method"; the last dot separates them. */
static int add_invoke(json_t *request, const struct run_options *o, struct error *err)
{
	const char *dot = o->invoke ? strrchr(o->invoke, '.') : NULL;
	json_t *params, *invoke;

	if (!o->invoke && o->params)
		return error_set(err, ERROR_INPUT, EINVAL, "--params needs --invoke");
	if (!o->invoke)
		return 0;
	if (!dot || dot == o->invoke || dot[1] == '\0')
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--invoke wants CLASS.METHOD, not '%.200s'", o->invoke);
	params = o->params ? json_loads(o->params, JSON_REJECT_DUPLICATES, NULL) : json_object();
	if (!json_is_object(params)) {
		json_decref(params);
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--params wants a JSON object, not '%.200s'", o->params);
	}
	invoke = json_pack("{s:s%, s:s, s:o}", "class", o->invoke, (size_t)(dot - o->invoke),
			   "method", dot + 1, "params", params);
	return run_put(request, "invoke", invoke, err);
}

/* A list of tests, or an object that has it beside what else says how they are judged. */
static int add_tests(json_t *request, const struct run_options *o, struct error *err)
{
	static const char *const keys[] = { "tests", "groups", "stop_at", "interactor" };
	json_t *tree;
	size_t n = 0;
	int r;

	if (!o->tests_file)
		return 0;
	r = load_tree(o->tests_file, &tree, err);
	if (r < 0 || !json_is_object(tree))
		return r < 0 ? r : run_put(request, "tests", tree, err);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(keys); i++) {
		json_t *value = json_object_get(tree, keys[i]);

		n += value != NULL;
		if (value)
			r = run_put(request, keys[i], json_incref(value), err);
	}
	if (r >= 0 && (n != json_object_size(tree) || !json_object_get(tree, "tests")))
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "%s: give a list of tests, or an object with tests and, if wanted, "
			      "groups, stop_at and interactor",
			      o->tests_file);
	json_decref(tree);
	return r;
}

int run_detect(json_t *request, const struct run_source *from, struct error *err)
{
	const struct atoll_sample sample = {
		.size = sizeof(sample),
		.path = from->path,
		.head = from->text,
		.n = MIN(from->len, (size_t)SAMPLE_MAX),
	};
	_cleanup_free_ char *language = NULL, *problem = NULL;
	int r;

	if (json_object_get(request, "language"))
		return 0;
	r = atoll_detect(from->atoll, &sample, &language, &problem);
	if (r < 0)
		return error_set(err, ERROR_RUNTIME, ENOPKG, "%s",
				 problem ? problem : "cannot tell the language; name it with -l");
	return run_put(request, "language", json_string(language), err);
}

/* A name that tracebacks can show unchanged: no characters that disturb a terminal or a compiler. */
static bool is_plain_name(const char *name)
{
	if (request_check_path(name, strlen(name), NULL) < 0 || strlen(name) > NAME_MAX ||
	    strchr("-.", name[0]) || !utf8_is_valid(name, strlen(name)))
		return false;
	for (const char *c = name; *c; c++)
		if (iscntrl((unsigned char)*c) || strchr("\"'\\:", *c))
			return false;
	return true;
}

/* FILE, - or -c become "code". */
static int add_code(json_t *request, struct run_options *o, struct atoll *atoll, struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = REQUEST_CODE_MAX };
	bool from_stdin = o->file && strcmp(o->file, "-") == 0;
	struct run_source source;
	const char *name;
	int r;

	if (o->with_dir && (!o->file || from_stdin))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--with-dir brings the directory of a FILE; name one");
	if (o->file && o->code)
		return error_set(err, ERROR_INPUT, EINVAL, "give a FILE or -c CODE, not both");
	if (o->code) {
		if (!json_object_get(request, "language"))
			return error_set(err, ERROR_INPUT, EINVAL,
					 "-c needs the language; name it with -l");
		return run_put(request, "code", bytes_to_json(o->code, strlen(o->code)), err);
	}
	if (!o->file)
		return 0;
	if (run_is_directory(o) || o->with_dir)
		return run_add_directory(request, o, atoll, err);
	if (o->all)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--all is about a directory, and '%.200s' is none", o->file);
	if (json_object_get(o->overrides, "entry"))
		return error_set(
			err, ERROR_INPUT, EINVAL,
			"--entry names a file of a directory, and '%.200s' is no directory",
			o->file);
	o->stdin_is_code = from_stdin;
	r = host_file_read(o->file, REQUEST_CODE_MAX, &text, err);
	if (r == -EFBIG)
		return error_set(err, ERROR_INPUT, EFBIG,
				 "'%.300s' is larger than the %d MiB that a program may have; put "
				 "its data into a file of its own, and pass that with --file",
				 o->file, REQUEST_CODE_MAX >> 20);
	if (r < 0)
		return r;
	source = (struct run_source){ atoll, from_stdin ? NULL : o->file,
				      text.data ? text.data : "", text.len };
	r = run_detect(request, &source, err);
	/* The program keeps FILE's name if that is plain; otherwise it gets the language's default. */
	(void)json_object_del(request, "entry"); /* of --request */
	name = strrchr(o->file, '/') ? strrchr(o->file, '/') + 1 : o->file;
	if (r == 0 && !from_stdin && is_plain_name(name))
		r = run_put_text(request, "entry", name, err);
	return r < 0 ? r : run_put(request, "code", bytes_to_json(source.text, source.len), err);
}

static int is_runnable(const json_t *request, struct error *err)
{
	static const char *const keys[] = { "code", "entry", "stages" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (json_object_get(request, keys[i]))
			return 0;
	}
	return error_set(err, ERROR_INPUT, EINVAL,
			 "nothing to run; give a FILE, -c CODE, - for standard input, or --stage; "
			 "to type code: atoll session repl");
}

int run_body(struct run_options *options, struct atoll *atoll, char *const *words, json_t **ret,
	     struct error *err)
{
	json_t *request = NULL;
	int r = 0;

	if (options->request_file)
		r = load_tree(options->request_file, &request, err);
	else
		request = json_object();
	if (r == 0 && !json_is_object(request))
		r = error_set(err, ERROR_INPUT, EINVAL, "'%.200s' does not hold a request object",
			      options->request_file);
	if (r == 0)
		r = merge_overrides(request, options->overrides, err);
	if (r == 0)
		r = add_code(request, options, atoll, err);
	if (r == 0)
		r = add_request_words(request, words, err);
	if (r == 0)
		r = add_invoke(request, options, err);
	if (r == 0)
		r = add_tests(request, options, err);
	if (r == 0)
		r = is_runnable(request, err);
	if (r < 0) {
		json_decref(request);
		return r;
	}
	*ret = request;
	return 0;
}
