/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run DIR` and --with-dir: the files of a directory become the request's. run-project.c finds the program of DIR. Where there are
 * several, the command asks for --entry.
 */
#include "atoll/commands/cmd-run.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEFT_OUT_BYTES = 160 };

bool run_is_directory(const struct run_options *o)
{
	struct stat st;

	return o->file && strcmp(o->file, "-") != 0 && stat(o->file, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

static int no_program(const char *dir, struct error *err)
{
	return error_set(err, ERROR_INPUT, ENOENT,
			 "'%.200s' has no main.*, __main__.py, index.js or Makefile, and no "
			 "go.mod, Cargo.toml or package.json that leads to a program; name "
			 "its program with --entry",
			 dir);
}

/* Whether the directory itself holds a name that may lead to a program. */
static bool may_have_program(const char *dir)
{
	static const char *const starts[] = { "main.",	    "Main.java",   "__main__.py", "index.",
					      "Makefile",   "makefile",	   "GNUmakefile", "go.mod",
					      "Cargo.toml", "package.json" };
	DIR *open_dir = opendir(dir);
	const struct dirent *entry;
	bool found = !open_dir;

	while (open_dir && !found && (entry = readdir(open_dir)))
		for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
			found = found || strncmp(entry->d_name, starts[i], strlen(starts[i])) == 0;
	if (open_dir)
		(void)closedir(open_dir);
	return found;
}

/* Puts the name of the program, or the stages of a Makefile, into the request. */
static int find_entry(json_t *request, json_t *files, const struct run_source *from,
		      struct error *err)
{
	const char *entry = NULL;
	int r = run_find_entry(files, from, &entry, err);

	if (r < 0)
		return r;
	if (!entry && run_has_makefile(files))
		return run_add_make(request, files, err);
	if (!entry)
		return no_program(from->path, err);
	return run_put(request, "entry", json_string(entry), err);
}

/* The language of the entry's name or first line. */
static int detect_entry(json_t *request, json_t *files, struct atoll *atoll, struct error *err)
{
	const char *entry = json_string_value(json_object_get(request, "entry"));
	const char *text = run_file_text(files, entry);
	const struct run_source program = { atoll, entry, text ? text : "",
					    text ? strlen(text) : 0 };

	return run_detect(request, &program, err);
}

/* A compiler of C is given one file; which others belong to the program, the Makefile says. */
static bool needs_make(json_t *request, json_t *files)
{
	const char *language = json_string_value(json_object_get(request, "language"));
	bool is_c = language && (strcmp(language, "c") == 0 || strcmp(language, "cpp") == 0);

	if (!is_c || !json_object_get(request, "entry") || !run_has_makefile(files))
		return false;
	(void)json_object_del(request, "entry");
	return true;
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
		.follows = true,
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
	if (r == 0) {
		r = gather_files(request, o, from.path, err);
		/* Of a directory that is no program, that is said, and not which of its files cannot be taken. */
		if (r < 0 && !json_object_get(request, "entry") &&
		    !json_object_get(request, "stages") && !may_have_program(from.path))
			return no_program(from.path, err);
	}
	if (r < 0)
		return r;
	files = json_object_get(request, "files");
	/* Stages name what they run. */
	if (json_object_get(request, "entry"))
		return detect_entry(request, files, atoll, err);
	if (json_object_get(request, "stages"))
		return 0;
	r = find_entry(request, files, &from, err);
	if (r == 0 && json_object_get(request, "entry"))
		r = detect_entry(request, files, atoll, err);
	return r == 0 && needs_make(request, files) ? run_add_make(request, files, err) : r;
}
