/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A language: one YAML file of languages/. Purely descriptive; adding a language is adding a file. Parsing is
 * pure: text in, struct out. Words of `run` and `compile` may hold {source}, {work}, {build}, {class}, {stem};
 * plan/ expands them.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"
#include "spec/limits.h"
#include "spec/yaml.h"

#include <jansson.h>
#include <stdbool.h>

/*
 * Section `warm`: how a program of this language can use a runtime that already runs. Its words may also hold
 * {runner} (fork), {runner_text} and {runner_fd} (start).
 */
enum warmth {
	WARMTH_NONE,  /* no such section */
	WARMTH_FORK,  /* forked from a runtime outside of sandboxes */
	WARMTH_START, /* started ahead, in the sandbox */
};

enum { WARM_TIERS_MAX = 8, WARM_MODULES_MAX = 32 };

struct language_warm { /* all NULL without the section; with it, no list is NULL */
	enum warmth kind;
	const char *runner;  /* runners/<file> that makes the runtime wait; NULL: argv names none */
	const char **argv;   /* key `run` */
	const char **env;    /* "K=V" words on top of the language's */
	const char ***tiers; /* lists of modules to load ahead, light the last; fork only */
	const char **light;  /* all that many programs import; fork only */
	/* variables that only take effect when a runtime starts; "X*" is a prefix */
	const char **cold_env;
};

/*
 * Section `kit`: files to make ready before a source is compiled for the first time (run/toolchain/kit.h). All NULL
 * without the section. A compile with a kit differs in words, variables and time, never in its product.
 */
struct language_kit {
	const char **make;  /* command that leaves the kit in the work directory */
	const char **words; /* added after the first word of `compile`; the kit is at /kit */
	const char **env;   /* "K=V" words on top of the language's */
	const char **doubt; /* if the compiler prints any of these, it runs again without the kit */
};

/*
 * Section `workspace`: additions for a program that starts in its workspace, because the runtime looks for
 * modules beside the source only. All NULL without the section.
 */
struct language_workspace {
	const char **words; /* added after the first word of `run` */
	const char **env;   /* "K=V" words on top of the language's */
};

/* By which requests and files name it. Lists are NULL-terminated, never NULL, here and below. */
struct language_known {
	const char **aliases;
	const char **extensions; /* without dot */
	const char **shebangs;	 /* interpreter base names: "python3" */
};

/* What runs it on this host. */
struct language_runtime {
	const char *path;	    /* absolute path that must exist in the sandbox's root */
	const char *package;	    /* Debian package that provides it */
	const char **needs;	    /* further absolute paths that must exist */
	const char **version_argv;  /* prints the version on stdout or stderr */
	const char *version_prefix; /* "Python " -> result.runtime = "Python 3.11.2" */
	const char **libraries;	    /* Python: modules that `atoll languages` looks for */
};

struct language_compile {
	const char **argv;	   /* empty: not compiled */
	const char *project;	   /* "go.mod": a request with this file compiles by … */
	const char **project_argv; /* … key `project_compile`; or NULL */
	struct limits limits;
	uint32_t limits_set;
};

struct language {
	json_t *root;	     /* owns every string below */
	struct arena memory; /* owns the lists */
	const char *name;    /* "python" */
	const char *title;   /* "Python" */
	struct language_known known;
	const char *source; /* "main.py"; Java: "{class}.java" */
	struct language_runtime runtime;
	struct language_compile compile;
	const char **run_argv;
	const char **env;     /* "K=V" words */
	const char **options; /* variables of the caller's that hold options of the runtime */
	const char **etc;     /* entries of /etc it needs, e.g. "java-17-openjdk" */
	const char *
		class_pattern; /* key `class`; "java": source name from the public class; or NULL */
	const char *runner;    /* runners/<file> that implements --invoke, or NULL */
	/* runners/<file> that the runtime loads ahead of every program, by the word {prelude}; or NULL */
	const char *prelude;
	const char **
		session; /* runners/<file>s that, joined, are the program of a session; empty: none */
	const char **
		/* a stage's code is appended to these as one word; empty: the code is a file */
		command;
	struct language_warm warm;
	struct language_kit kit;
	struct language_workspace workspace;
	const char *id;		  /* the id in requests: the name, or "python@3.12" of a version */
	const char *version_name; /* "3.12" of a version; NULL of a language */
	struct language **versions; /* key `versions`: languages with some other keys; owned */
	size_t n_versions;
};

int language_parse(const struct document *doc, struct language **ret,
		   struct error *err) _must_check_;
struct language *language_free(struct language *lang);
static inline void language_cleanup(struct language **lang)
{
	(void)language_free(*lang);
}
/* Case-insensitive: name or alias. */
bool language_matches(const struct language *lang, const char *name);
/* The version with this name in the language's file, ignoring case; or NULL. */
const struct language *language_find_version(const struct language *lang, const char *name);
/* Whether a runtime of version "3.11.2" satisfies a request for "3.11", "3" or "3.11.2". */
bool language_version_fits(const char *have, const char *wanted);
bool language_has_extension(const struct language *lang, const char *extension);
bool language_has_shebang(const struct language *lang, const char *line, size_t len);
/*
 * Java: the name of the public type in the source; otherwise of the first with a main method; otherwise of the
 * first; otherwise "Main".
 */
void language_class_name(const char *source, size_t len, char *ret, size_t size);
/* The same with its package before it, as `java` wants it: "org.example.Main". */
void language_main_class(const char *source, size_t len, char *ret, size_t size);
struct program_text {
	struct span code;
	const char *name; /* the caller's name for it, or NULL */
};
/*
 * The file name under which code is stored: the caller's if the language can run a file of that name, otherwise
 * `source`, with {class} taken from the code.
 */
void language_source_name(const struct language *lang, const struct program_text *program,
			  char *ret, size_t size);
/*
 * The same for the code of a stage, counted from 0: "main-2.py". Names of stages differ, except with {class}.
 */
void language_stage_source(const struct language *lang, size_t stage, const char *code, char *ret,
			   size_t size);
/* Whether a warm runtime would see this variable too late. Only for languages with that section. */
bool language_wants_cold(const struct language *lang, const char *variable);
