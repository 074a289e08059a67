/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run DIR`: the files of a directory become the request's, and its program is found by the names that people give to it. Where
 * several names fit, the command asks for --entry.
 */
#include "cli/cmd-run.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "spec/request.h"

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
		return error_set(
			err, ERROR_INPUT, ENOENT,
			"'%.200s' has no main.*, __main__.py, index.js or package.json with "
			"main; name its program with --entry",
			from->path);
	return json_object_set_new(request, "entry", json_string(entry)) < 0 ? error_oom(err) : 0;
}

int run_add_directory(json_t *request, const struct run_source *from, struct error *err)
{
	json_t *files = json_object_get(request, "files"), *own = json_object();
	const char *entry, *text;
	int r = host_tree_add(own, "", from->path, err);

	/* What --file names replaces a file of the directory. */
	if (r == 0 && files && json_object_update(own, files) < 0)
		r = error_oom(err);
	if (json_object_set_new(request, "files", own) < 0)
		return error_oom(err);
	if (r == 0 && !json_object_get(request, "entry"))
		r = find_entry(request, own, from, err);
	if (r < 0)
		return r;
	entry = json_string_value(json_object_get(request, "entry"));
	text = text_in(own, entry);
	return run_detect(request,
			  &(struct run_source){ from->atoll, entry, text ? text : "",
						text ? strlen(text) : 0 },
			  err);
}
