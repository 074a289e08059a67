/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of `atoll run`. Options fill a struct and a tree of overrides. run_body() joins them with
 * --request, FILE and the program's words into one request body. run_remote() sends it to a running daemon, or
 * cmd-run.c gives it to the public library; both stream. run_report() prints parts of the result beyond the
 * program's own output.
 */
#pragma once

#include "atoll/atoll.h"
#include "atoll/commands/options.h"
#include "atoll/commands/remote.h"

#include <jansson.h>
#include <stdbool.h>

struct run_options {
	json_t *overrides; /* the flags, in the shape of a request body */
	const char *file;  /* FILE or "-"; NULL: none */
	const char *code;  /* of -c */
	const char *request_file;
	const char *tests_file;
	const char *invoke, *params;
	const char *output_dir;
	const char *url;
	bool json, quiet, explain, no_daemon;
	bool with_dir; /* FILE's directory comes with it */
	bool all;      /* .gitignore files do not matter */
	struct progress progress;
	bool is_minimal;    /* the policy is that of --isolation */
	bool stdin_is_code; /* standard input was read as the program */
	bool stdin_begun;   /* the part read so far is the request's "stdin" … */
	bool stdin_over;    /* … and it is complete */
};

extern const struct option_list run_option_list;
/* For commands that take some of the flags of `atoll run`; their structs begin with struct run_options. */
const struct option *run_option(const char *flag); /* never NULL */
/* Puts a value, or a text of the command line (one that is not UTF-8 is refused), into a request. */
int run_put(json_t *object, const char *key, json_t *value, struct error *err);
int run_put_text(json_t *object, const char *key, const char *text, struct error *err);
int run_limit(void *data, const struct knob *knob, const char *value, struct error *err);

/* The whole request body; the caller owns it. words: those after "--", NULL-terminated. */
int run_body(struct run_options *options, struct atoll *atoll, char *const *words, json_t **ret,
	     struct error *err) _must_check_;

/* Reads a whole file; "-" is standard input. */
int host_file_read(const char *path, size_t max, struct buf *ret, struct error *err) _must_check_;
/* A text if the bytes are UTF-8 without NUL, otherwise {"base64": …}. */
json_t *bytes_to_json(const char *data, size_t len);
/* A file or directory of the host. */
struct host_source {
	const char *path;
	const char *dest; /* "": the work directory */
	bool follows;	  /* path may be a link */
	bool ignores;	  /* leaves out what .gitignore files in the directory name … */
	const char *keep; /* … but for this path; or NULL */
	struct buf *
		left_out; /* gets the names of what was left out, as far as there is room; or NULL */
	struct progress *progress;
};
/* Adds it, or every file below it but .git, to files. */
int host_tree_add(json_t *files, const struct host_source *from, struct error *err) _must_check_;

/* Whether FILE is a directory, whose files are run. */
bool run_is_directory(const struct run_options *o);
/* A program of the host: its path, and the start of its text. */
struct run_source {
	struct atoll *atoll;
	const char *path;
	const char *text;
	size_t len;
};
/* Puts the language of the program, if none is named, into the request. */
int run_detect(json_t *request, const struct run_source *from, struct error *err) _must_check_;
/* Puts the files of the directory and, if no entry is named, the name of its program into the request. */
int run_add_directory(json_t *request, struct run_options *o, struct atoll *atoll,
		      struct error *err) _must_check_;

/* Prints the tests' verdicts or the invoked method's value; returns the exit code. */
int run_report(const json_t *result, int exit_code);

/* The user's terminal in another mode, until it is restored. */
struct terminal {
	int fd; /* -EBADF: none */
	void *saved;
	int when; /* of TCSETATTR: whether typed bytes that were not read are dropped */
};
/* Every byte goes to the program of a --tty run. */
void terminal_raw(struct terminal *t, int fd);
/* Every key goes to this process, which shows it; ^C stays a signal. */
void terminal_keys(struct terminal *t, int fd);
void terminal_restore(struct terminal *t);

/* The outcome of one run: its result, and how to exit. */
struct run_outcome {
	char *json, *notice, *problem, *reduced;
	json_t *result; /* the same as json, where that is not to be printed; or NULL */
	int exit_code;
	int signal; /* the signal that cancelled it, or 0 */
	int broken; /* errno: the output could not be written; or 0 */
};

/* Standard output and error of this process while a program runs. */
struct run_stream {
	int cancel_fd;
	int broken; /* errno: the output could not be written; or 0 */
};
/* Writes everything; -ECANCELED when a signal comes first. */
int run_output(struct run_stream *s, int fd, const char *bytes, size_t n);
/* Signals that cancel a run, as a descriptor; they no longer kill this process. */
int run_signal_fd(struct error *err) _must_check_;
/* The signal that cancelled the run, or 0. */
int run_signal_taken(int fd);
/* Whether the program reads (the rest of) standard input. */
bool run_wants_result(const struct run_options *o, const json_t *request);
bool run_feeds_stdin(const struct run_options *o, const json_t *request);

/* --- run-remote.c --- */
struct run_remote {
	bool is_there;
	int absent;	     /* errno of the connection; 0: it is there, or none was tried */
	struct atoll *atoll; /* knows the languages; NULL: nothing is said about compiling */
	struct remote remote;
	struct http_client *client;
	int64_t opened_ns;
};
/* Connects to the daemon at url; NULL: that of the environment, or of the default place. A missing one is no failure yet. */
int run_remote_open(struct run_remote *d, const char *url, struct error *err) _must_check_;
void run_remote_close(struct run_remote *d);
/*
 * 1: *out has the outcome; 0: run it here (request may have got a part of standard input); negative: refused.
 */
int run_remote(struct run_remote *d, struct run_options *o, json_t *request,
	       struct run_outcome *out, struct error *err) _must_check_;
