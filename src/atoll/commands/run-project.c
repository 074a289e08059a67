/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run DIR` and --with-dir: the files of a directory become the request's. Where it has several programs, the command asks for --entry.
 *
 * The program of a directory is found by the names that people and their tools give to it: main.*, a Go module, a Cargo package, package.json,
 * __main__.py and the like. A Makefile is a stage of its own: `make` builds in the sandbox, then what it built runs.
 */
#include "atoll/commands/cmd-run.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/span.h"
#include "spec/request.h"

enum { NAMES_BYTES = 200, LEFT_OUT_BYTES = 160 };

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

static const char *run_file_text(const json_t *files, const char *path)
{
	const json_t *file = json_object_get(files, path);

	return json_string_value(json_is_object(file) ? json_object_get(file, "text") : file);
}

static void find_mains(struct programs *p)
{
	const char *path;
	json_t *value;

	json_object_foreach(p->files, path, value)
	{
		const struct atoll_sample sample = { .size = sizeof(sample),
						     .path = path,
						     .head = "" };
		_cleanup_free_ char *language = NULL, *problem = NULL;

		/* Data such as main.txt is a program of no language. */
		if (strncmp(path, "main.", 5) == 0 && !strchr(path, '/') &&
		    atoll_detect(p->atoll, &sample, &language, &problem) == 0)
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

/* The program among files, which is one of their names; NULL: none. Several are refused. */
static int run_find_entry(json_t *files, const struct run_source *from, const char **ret,
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

static const char *makefile_of(const json_t *files)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile" };
	const char *text = NULL;

	for (size_t i = 0; !text && i < ARRAY_SIZE(names); i++)
		text = run_file_text(files, names[i]);
	return text;
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

/* The stages of a Makefile: build, and run. */
static int run_add_make(json_t *request, json_t *files, struct error *err)
{
	const char *run = has_run_target(makefile_of(files)) ? "exec make -s run" : run_script;
	json_t *stages = json_pack("[{s:s, s:[s, s, s]}, {s:s, s:[s, s, s]}]", "name", "make",
				   "argv", "/bin/sh", "-c", build_script, "name", "run", "argv",
				   "/bin/sh", "-c", run);

	(void)json_object_del(request, "language");
	return run_put(request, "stages", stages, err);
}

/* --- the directory -------------------------------------------------------------------------------------------------- */

bool run_is_directory(const struct run_options *o)
{
	struct stat st;

	return o->file && strcmp(o->file, "-") != 0 && stat(o->file, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

static int no_program(const char *dir, struct error *err)
{
	return error_set(
		err, ERROR_INPUT, ENOENT,
		"'%.200s' has no main.*, __main__.py, index.js or Makefile, and no go.mod, "
		"Cargo.toml or package.json that leads to a program; name its program with --entry",
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

/* The language of the entry's name or first line. */
static int detect_entry(json_t *request, const json_t *files, struct atoll *atoll,
			struct error *err)
{
	const char *entry = json_string_value(json_object_get(request, "entry"));
	const char *text = run_file_text(files, entry) ?: "";

	return run_detect(request, &(struct run_source){ atoll, entry, text, strlen(text) }, err);
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
	const char *entry = NULL, *language;
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
	r = run_find_entry(files, &from, &entry, err);
	if (r < 0)
		return r;
	if (!entry && makefile_of(files))
		return run_add_make(request, files, err);
	if (!entry)
		return no_program(from.path, err);
	r = run_put(request, "entry", json_string(entry), err);
	if (r == 0)
		r = detect_entry(request, files, atoll, err);
	/* A compiler of C is given one file; which others belong to the program, the Makefile says. */
	language = json_string_value(json_object_get(request, "language"));
	if (r < 0 || !language || !makefile_of(files) ||
	    (strcmp(language, "c") != 0 && strcmp(language, "cpp") != 0))
		return r;
	(void)json_object_del(request, "entry");
	return run_add_make(request, files, err);
}
