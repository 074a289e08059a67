/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a directory, by the names that people and their tools give to it: main.*, a Go module, a Cargo package, package.json,
 * __main__.py and the like. A Makefile is a stage of its own: `make` builds in the sandbox, then what it built runs.
 */
#include "atoll/commands/cmd-run.h"

#include <stdio.h>
#include <string.h>

#include "base/span.h"
#include "spec/request.h"

enum { NAMES_BYTES = 200 };

/* The programs that one of the finders saw. */
struct programs {
	json_t *files;
	struct atoll *atoll;
	const char *found; /* a key of files */
	size_t n;
	struct buf *names; /* of several; those that find no room are not named */
};

static void offer_program(struct programs *p, const char *path)
{
	p->found = path;
	(void)!buf_printf(p->names, "%s%s", p->n++ > 0 ? ", " : "", path);
}

/* The same with a path that is not a key of files; one that no file has is no program. */
static bool offer_path(struct programs *p, const char *path)
{
	void *at = json_object_iter_at(p->files, path);

	if (at)
		offer_program(p, json_object_iter_key(at));
	return at;
}

const char *run_file_text(json_t *files, const char *path)
{
	const json_t *file = json_object_get(files, path);

	return json_string_value(json_is_object(file) ? json_object_get(file, "text") : file);
}

/* Whether a program of some language has this name: data such as main.txt has none. */
static bool is_program(struct atoll *atoll, const char *path)
{
	const struct atoll_sample sample = { .size = sizeof(sample), .path = path, .head = "" };
	_cleanup_free_ char *language = NULL, *problem = NULL;

	return atoll_detect(atoll, &sample, &language, &problem) == 0;
}

static void find_mains(struct programs *p)
{
	const char *path;
	json_t *value;

	json_object_foreach(p->files, path, value)
	{
		if (strncmp(path, "main.", 5) == 0 && !strchr(path, '/') &&
		    is_program(p->atoll, path))
			offer_program(p, path);
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Files of package main with a main function; those at the top before those of cmd/NAME. */
static void find_go(struct programs *p)
{
	const char *path, *text;
	json_t *value;

	if (!json_object_get(p->files, "go.mod"))
		return;
	for (int below = 0; below <= 1 && p->n == 0; below++) {
		json_object_foreach(p->files, path, value)
		{
			if (!ends_with(path, ".go") || ends_with(path, "_test.go") ||
			    !strchr(path, '/') != !below)
				continue;
			text = run_file_text(p->files, path);
			if (text && strstr(text, "package main") && strstr(text, "\nfunc main()"))
				offer_program(p, path);
		}
	}
}

/* Offers the `path = "…"` of each [[bin]]. */
static void read_cargo_bins(struct programs *p, const char *manifest)
{
	bool in_bin = false;

	for (struct span rest = span_of(manifest), line; span_split(&rest, '\n', &line);) {
		char path[REQUEST_PATH_MAX + 1], text[REQUEST_PATH_MAX + 64];

		line = span_trim(line);
		(void)snprintf(text, sizeof(text), "%.*s", (int)MIN(line.len, sizeof(text) - 1),
			       line.data ? line.data : "");
		if (text[0] == '[')
			in_bin = strncmp(text, "[[bin]]", 7) == 0;
		else if (in_bin && sscanf(text, "path = \"%1000[^\"]\"", path) == 1)
			(void)offer_path(p, path);
	}
}

static void find_cargo(struct programs *p)
{
	const char *manifest = run_file_text(p->files, "Cargo.toml"), *path;
	json_t *value;

	if (!manifest || offer_path(p, "src/main.rs"))
		return;
	read_cargo_bins(p, manifest);
	json_object_foreach(p->files, path, value)
	{
		if (p->n == 0 && strncmp(path, "src/bin/", 8) == 0 && ends_with(path, ".rs"))
			offer_program(p, path);
	}
}

/* What package.json names as main, as Node.js resolves it. */
static void find_package_main(struct programs *p)
{
	static const char *const ends[] = { "", ".js", ".cjs", ".mjs", ".ts", "/index.js" };
	const char *text = run_file_text(p->files, "package.json"), *name;
	json_t *package = text ? json_loads(text, 0, NULL) : NULL;
	char path[REQUEST_PATH_MAX + 1];
	size_t n;

	name = json_string_value(json_object_get(package, "main"));
	if (name && strncmp(name, "./", 2) == 0)
		name += 2;
	n = name ? strlen(name) : 0;
	if (n > 0 && name[n - 1] == '/')
		n--;
	for (size_t i = 0; n > 0 && p->n == 0 && i < ARRAY_SIZE(ends); i++)
		if (snprintf(path, sizeof(path), "%.*s%s", (int)n, name, ends[i]) <
		    (int)sizeof(path))
			(void)offer_path(p, path);
	json_decref(package);
}

static void find_usual(struct programs *p)
{
	static const char *const usual[] = { "__main__.py", "Main.java", "src/main.rs",
					     "src/main.py", "index.js",	 "index.ts" };

	for (size_t i = 0; p->n == 0 && i < ARRAY_SIZE(usual); i++)
		(void)offer_path(p, usual[i]);
}

int run_find_entry(json_t *files, const struct run_source *from, const char **ret,
		   struct error *err)
{
	static void (*const finders[])(struct programs *) = { find_mains, find_go, find_cargo,
							      find_package_main, find_usual };
	_cleanup_buf_ struct buf names = { .max = NAMES_BYTES };
	struct programs p = { .files = files, .atoll = from->atoll, .names = &names };
	size_t i;

	for (i = 0; p.n == 0 && i < ARRAY_SIZE(finders); i++)
		finders[i](&p);
	if (p.n > 1)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "'%.150s' has several programs%s; name one with --entry: %s",
				 from->path, i == 1 ? " main.*" : "",
				 names.data ? names.data : p.found);
	*ret = p.found;
	return 0;
}

/* --- Makefile ------------------------------------------------------------------------------------------------------- */

static const char *makefile_of(json_t *files)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile" };
	const char *text = NULL;

	for (size_t i = 0; !text && i < ARRAY_SIZE(names); i++)
		text = run_file_text(files, names[i]);
	return text;
}

bool run_has_makefile(json_t *files)
{
	return makefile_of(files) != NULL;
}

/* Whether there is a rule for the target `run`: `run:` or `run::`, and no variable (`run := …`). */
static bool has_run_target(const char *makefile)
{
	for (const char *at = makefile; at; at = strchr(at, '\n')) {
		size_t name, colons;

		at += *at == '\n';
		if (strncmp(at, "run", 3) != 0)
			continue;
		name = 3 + strspn(at + 3, " \t");
		colons = strspn(at + name, ":");
		if (colons > 0 && at[name + colons] != '=')
			return true;
	}
	return false;
}

/* What make prints is shown when it fails, as with any compiler. */
static const char build_script[] =
	"command -v make >/dev/null || {\n"
	"	echo 'atoll: make is not installed here; install the package make' >&2\n"
	"	exit 127\n"
	"}\n"
	": >/tmp/.before-make\n"
	"make >/tmp/.make 2>&1 || { status=$?; cat /tmp/.make >&2; exit $status; }\n";

/* Without a target `run`, the one program that make built. */
static const char run_script[] =
	"built=$(find . -type f -perm -100 -newer /tmp/.before-make ! -name '*.so*' | sort)\n"
	"case $(printf %s \"$built\" | grep -c .) in\n"
	"1) exec \"$built\" \"$@\" ;;\n"
	"0) say='no program' ;;\n"
	"*) say=\"several programs (\"$(echo $built)\")\" ;;\n"
	"esac\n"
	"echo \"atoll: make built $say, and the Makefile has no target run; name it:\" \\\n"
	"	'--stage build=make --stage run=./PROGRAM' >&2\n"
	"exit 127\n";

int run_add_make(json_t *request, json_t *files, struct error *err)
{
	const char *run = has_run_target(makefile_of(files)) ? "exec make -s run" : run_script;
	json_t *stages = json_pack("[{s:s, s:[s, s, s]}, {s:s, s:[s, s, s]}]", "name", "make",
				   "argv", "/bin/sh", "-c", build_script, "name", "run", "argv",
				   "/bin/sh", "-c", run);

	(void)json_object_del(request, "language");
	return run_put(request, "stages", stages, err);
}
