/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run DIR` and --with-dir: the files of a directory become the request's. The program of DIR is found by the names that people
 * give to it. Where several names fit, the command asks for --entry.
 */
#include "cli/cmd-run.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"
#include "spec/request.h"

enum { LEFT_OUT_BYTES = 160 };

bool run_is_directory(const struct run_options *o)
{
	struct stat st;

	return o->file && strcmp(o->file, "-") != 0 && stat(o->file, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* The text of a file of the request, or NULL. */
static const char *text_in(const json_t *files, const char *path)
{
	const json_t *file = json_object_get(files, path);

	return json_string_value(json_is_object(file) ? json_object_get(file, "text") : file);
}

/* The path that package.json names as main, or NULL. */
static const char *package_main(const json_t *files, char *path, size_t size)
{
	const char *text = text_in(files, "package.json"), *name;
	json_t *package = text ? json_loads(text, 0, NULL) : NULL;

	name = json_string_value(json_object_get(package, "main"));
	if (name && strncmp(name, "./", 2) == 0)
		name += 2;
	(void)snprintf(path, size, "%s", name ? name : "");
	json_decref(package);
	return json_object_get(files, path) ? path : NULL;
}

/* Whether a program of some language has this name: data such as main.txt has none. */
static bool is_program(struct atoll *atoll, const char *path)
{
	const struct atoll_sample sample = { .size = sizeof(sample), .path = path, .head = "" };
	_cleanup_free_ char *language = NULL, *problem = NULL;

	return atoll_detect(atoll, &sample, &language, &problem) == 0;
}

/* How many files main.EXT are at the top; *ret is one of them. */
static size_t find_mains(json_t *files, struct atoll *atoll, const char **ret)
{
	const char *path;
	json_t *value;
	size_t n = 0;

	json_object_foreach(files, path, value)
	{
		if (strncmp(path, "main.", 5) != 0 || strchr(path, '/') || !is_program(atoll, path))
			continue;
		*ret = path;
		n++;
	}
	return n;
}

/* A program by one of the names that stand for it in their language, or NULL. */
static const char *usual_entry(const json_t *files, char *path, size_t size)
{
	static const char *const usual[] = { "__main__.py", "Main.java", "src/main.rs",
					     "src/main.py", "index.js",	 "index.ts" };

	if (package_main(files, path, size))
		return path;
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (json_object_get(files, usual[i]))
			return usual[i];
	return NULL;
}

static int no_entry(const json_t *files, const char *path, struct error *err)
{
	/* Which of the files that make builds is the program, no file says. */
	if (json_object_get(files, "Makefile") || json_object_get(files, "makefile"))
		return error_set(
			err, ERROR_INPUT, ENOENT,
			"'%.200s' has a Makefile and no main.*; build and run it with --stage "
			"build=make --stage run=./PROGRAM, or name a program with --entry",
			path);
	return error_set(err, ERROR_INPUT, ENOENT,
			 "'%.200s' has no main.*, __main__.py, index.js or package.json with "
			 "main; name its program with --entry",
			 path);
}

static int find_entry(json_t *request, json_t *files, const struct run_source *from,
		      struct error *err)
{
	char path[REQUEST_PATH_MAX + 1];
	const char *entry = NULL;
	size_t n = find_mains(files, from->atoll, &entry);

	if (n == 0)
		entry = usual_entry(files, path, sizeof(path));
	if (n > 1)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "'%.200s' has several programs main.*; name one with --entry",
				 from->path);
	if (!entry)
		return no_entry(files, from->path, err);
	return json_object_set_new(request, "entry", json_string(entry)) < 0 ? error_oom(err) : 0;
}

/* The language of the entry's name or first line. */
static int detect_entry(json_t *request, const json_t *files, struct atoll *atoll,
			struct error *err)
{
	const char *entry = json_string_value(json_object_get(request, "entry"));
	const char *text = text_in(files, entry);
	const struct run_source program = { atoll, entry, text ? text : "",
					    text ? strlen(text) : 0 };

	return run_detect(request, &program, err);
}

/* FILE in two parts, for --with-dir: "src/main.py" is the directory "src" and its entry. */
static int split_file(json_t *request, const struct run_options *o, char *dir, size_t size,
		      struct error *err)
{
	const char *slash = strrchr(o->file, '/');
	const char *name = slash ? slash + 1 : o->file;

	if (json_object_get(request, "entry"))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "--entry names a file of a directory, and '%.200s' is none",
				 o->file);
	if (access(o->file, R_OK) < 0)
		return error_set(err, ERROR_INPUT, errno, "cannot read '%.300s': %s", o->file,
				 strerror(errno));
	if (snprintf(dir, size, "%.*s", slash ? (int)(slash - o->file) + 1 : 1,
		     slash ? o->file : ".") >= (int)size)
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "the path '%.200s…' is too long",
				 o->file);
	return json_object_set_new(request, "entry", json_string(name)) < 0
		       ? error_set(err, ERROR_INPUT, EILSEQ, "'%.200s' is not UTF-8 text", o->file)
		       : 0;
}

/* The files of the directory, and those of --file, which replace them. */
static int gather_files(json_t *request, struct run_options *o, const char *dir, struct error *err)
{
	json_t *named = json_object_get(request, "files"), *own = json_object();
	_cleanup_buf_ struct buf left_out = { .max = LEFT_OUT_BYTES };
	const struct host_source from = {
		.path = dir,
		.dest = "",
		.ignores = !o->all,
		.keep = json_string_value(json_object_get(request, "entry")),
		.left_out = &left_out,
		.progress = &o->progress,
	};
	int r = host_tree_add(own, &from, err);

	if (r == 0 && left_out.len > 0 && o->progress.wanted)
		say("files that .gitignore names are left out (%s); --all takes everything",
		    left_out.data);
	if (r == 0 && named && json_object_update(own, named) < 0)
		r = error_oom(err);
	if (json_object_set_new(request, "files", own) < 0)
		return error_oom(err);
	return r;
}

int run_add_directory(json_t *request, struct run_options *o, struct atoll *atoll,
		      struct error *err)
{
	char dir[PATH_MAX];
	struct run_source from = { .atoll = atoll, .path = o->file };
	json_t *files;
	int r = 0;

	if (!run_is_directory(o)) {
		r = split_file(request, o, dir, sizeof(dir), err);
		from.path = dir;
	}
	if (r == 0)
		r = gather_files(request, o, from.path, err);
	if (r < 0)
		return r;
	files = json_object_get(request, "files");
	/* Stages name what they run. */
	if (json_object_get(request, "entry"))
		return detect_entry(request, files, atoll, err);
	if (json_object_get(request, "stages"))
		return 0;
	r = find_entry(request, files, &from, err);
	return r < 0 ? r : detect_entry(request, files, atoll, err);
}
