/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings. One table (settings-table.c) gives each its key in atoll.yaml, its variable, its flag,
 * type, bounds, default and help; all readers, the example file and the messages come from that table. The
 * variable of `queue.max` is ATOLL_QUEUE_MAX; limits are `limits.defaults.KEY` and `limits.ceilings.KEY` of
 * spec/knob.h, as ATOLL_LIMITS_DEFAULTS_KEY.
 *
 *   /etc/atoll/atoll.yaml < $XDG_CONFIG_HOME/atoll/atoll.yaml < --config < ATOLL_* < SANDBOX_*, OUTPUT_DATA_PATH, DEBUG < flags
 *
 * The monitor reads the settings once and hands them to the front as JSON in a sealed memfd (config_to_json,
 * config_from_json), tokens included, so the front needs no access to root's files. No other folder includes
 * this header: front-parts.c fills the option structs of engine and API.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "spec/limits.h"
#include "spec/presets.h"

#include <jansson.h>
#include <stdbool.h>

#define CONFIG_SECRET_PREFIX "whsec_"
/* After a token in its file, and in config.access.tokens: its owner may read what concerns the whole server. */
#define CONFIG_OPERATOR_MARK " operator"

enum {
	CONFIG_FILES_MAX = 3,
	CONFIG_WORDS_MAX = 64,
	CONFIG_LISTEN_MAX = 15,
	CONFIG_TOKEN_MIN = 16,
	CONFIG_TOKEN_MAX = 512,
	CONFIG_SECRET_MAX = 128
};

#define CONFIG_SYSTEM_FILE   "/etc/atoll/atoll.yaml"
#define CONFIG_LISTEN	     "127.0.0.1:8700"
#define CONFIG_LISTEN_COMPAT "127.0.0.1:6000" /* where clients of the NeMo Agent Toolkit connect */

/* The workspace of POST /execute; output_data_path moves it. */
#define CONFIG_EXECUTE_WORKSPACE "execute"

enum config_durability { DURABILITY_NORMAL, DURABILITY_FULL };
enum config_execute { EXECUTE_PYTHON, EXECUTE_ALL };

/*
 * The settings, group by group. Texts and lists are in the `memory` of struct config, and not NULL unless the
 * comment says so; lists end with NULL. Times in ms, sizes in bytes.
 */
struct config_listening {
	const char *const *addresses; /* "127.0.0.1:8700", "[::1]:8700" */
	bool named;	    /* addresses were given: all of them must open, also port 6000 */
	const char *socket; /* unix, 0600; "": none */
};

struct config_access {
	const char *token_file; /* "": none */
	/* lines of token_file; each one gives access. config_read_tokens() */
	const char *const *tokens;
	bool token_short; /* a token is short enough to guess */
	bool unauthenticated;
	const char *const *hosts; /* names accepted in Host, beside the listening addresses */
	const char *const *origins;
};

struct config_mcp {
	const char *resource;	    /* URL of /mcp as clients know it; "": none */
	const char *const *issuers; /* that give tokens for it; empty: none */
};

/* Directories. */
struct config_places {
	const char *state_dir;	   /* 0700: history, outputs, workspaces */
	const char *data_dir;	   /* languages/, policies/, runners/; "": searched for */
	const char *policies_dir;  /* further policies; "": only those of data_dir */
	const char *const *images; /* below which an image may be; empty: none */
	const char *const *mounts; /* DIR or DIR:rw: the most that policies may permit as mounts */
	const char *output_data_path; /* /workspace of POST /execute; "": in the state directory */
};

struct config_languages {
	const char *file; /* SANDBOX_LANGUAGE_CONFIG_FILE; "": none */
	const char *text; /* its content, JSON; or NULL. config_read_languages() */
	int32_t execute;  /* of POST /execute: enum config_execute */
};

struct config_limits {
	struct limits defaults, ceilings;    /* complete: shipped values where none was set */
	uint32_t defaults_set, ceilings_set; /* knob_bit()s of the limits that were set */
};

/* The adaptive timeout. */
struct config_adaptive {
	int64_t factor_milli; /* of the mean of past runs */
	int64_t min_ms;
};

struct config_queue {
	int64_t max, per_caller; /* waiting */
	int64_t bytes, bytes_per_caller;
	int64_t running; /* at once; never 0: derived from cores and memory if not set */
	int64_t judging; /* of them, with tests; never 0: as many as cores if not set */
};

struct config_sessions {
	int64_t max, per_caller, host_calls;
};

struct config_http {
	int64_t connections_max;
	int64_t body_bytes_max;
	int64_t header_ms; /* for a request's head */
	int64_t body_ms; /* no byte of a request's body, or of a WebSocket's message, comes for that time */
	int64_t idle_ms;  /* between two requests */
	int64_t write_ms; /* a reader takes no byte for that time */
};

/* What the history keeps, and how long. */
struct config_history {
	int32_t durability; /* enum config_durability */
	int64_t age_ms, count, bytes;
	int64_t idempotency_ms; /* how long an idempotency key is remembered */
};

struct config_callback {
	bool allow;
	const char *const *hosts; /* "host", "host:port", "*.domain"; empty: any public address */
	int64_t timeout_ms, attempts;
	const char *secret_file;    /* "": none */
	const char *const *secrets; /* its lines; config_read_secrets() */
};

/* Of each workspace; 0: no bound. */
struct config_workspaces {
	int64_t bytes, files;
};

/* Warm runtimes, which the broker keeps. */
struct config_pool {
	bool automatic;	      /* of `atoll run`; not of the daemon */
	int64_t memory_bytes; /* 0: a 16th of the host's memory, at most 1 GiB */
	int64_t spares;	      /* of one shape; 0: none */
};

struct config_log {
	int32_t format;	  /* enum log_format */
	int32_t level;	  /* enum log_level */
	const char *file; /* "": standard error */
};

struct config_audit {
	const char *file;	 /* "": none */
	int64_t bytes;		 /* size at which it is rotated; 0: no bound */
	int64_t files;		 /* rotated files that are kept */
	int64_t alert_count;	 /* crashes, denials or near-limit runs of one caller … */
	int64_t alert_window_ms; /* … within this time make an alert */
};

struct config {
	struct arena memory;
	const char
		*files[CONFIG_FILES_MAX + 1]; /* that were read, in their order; ends with NULL */
	struct config_listening listening;
	struct config_access access;
	struct config_mcp mcp;
	struct config_places places;
	struct config_languages languages;
	const char *user; /* the front's user when the monitor is root; "": atoll, or FRONT_UID */
	struct config_limits limits;
	struct config_adaptive adaptive;
	struct config_queue queue;
	struct config_sessions sessions;
	int64_t drain_ms; /* time for runs to end after SIGTERM */
	struct config_http http;
	struct config_history history;
	bool network; /* policies may permit programs to reach other machines */
	struct config_callback callback;
	struct config_workspaces workspaces;
	struct config_pool pool;
	struct config_log log;
	struct config_audit audit;
};

/* The sources of settings; tests give their own. */
struct config_flag {
	const char *key, *value;
};
struct config_source {
	const char *system_file; /* CONFIG_SYSTEM_FILE */
	const char *named_file;	 /* --config, or NULL: must exist */
	const char *const *env;	 /* environ: "KEY=value", NULL-terminated */
	const struct config_flag
		*flags; /* in order; keys as in the file, values as text; lists: each adds */
	size_t n_flags;
	bool root;
	bool until_eof; /* the daemon ends when its standard input ends */
	int32_t cores;
	int64_t memory_bytes; /* of the host */
};

int config_load(const struct config_source *source, struct config *ret,
		struct error *err) _must_check_;
void config_done(struct config *c);
/* pool.auto alone, of the files and its variable: for `atoll run`, which no other setting concerns. */
int config_read_pool(const struct config_source *source, bool *ret, struct error *err) _must_check_;
/*
 * Fills access.tokens from access.token_file, which only its owner (the user, or root) may be able to read and write. No file: no
 * tokens.
 */
int config_read_tokens(struct config *c, struct error *err) _must_check_;
/* Logs what is accepted and yet unwise about the tokens. */
void config_warn_of_tokens(const struct config *c, struct log *log);
/* Fills callback.secrets from callback.secret_file, which only its owner (the user, or root) may be able to read. */
int config_read_secrets(struct config *c, struct error *err) _must_check_;
/* Fills languages.text from languages.file after checking it. No file: NULL. */
int config_read_languages(struct config *c, struct error *err) _must_check_;
/* Parses languages.text, which must not be NULL. */
int config_presets(const struct config *c, struct presets *ret, struct error *err) _must_check_;
/* If other machines can reach a listening address, tokens or allow_unauthenticated are required. */
int config_check_exposure(const struct config *c, struct error *err) _must_check_;

/* All settings, tokens too. NULL: no memory. */
json_t *config_to_json(const struct config *c);
int config_from_json(const json_t *root, struct config *ret, struct error *err) _must_check_;

/* One address of `listen`, parsed. */
struct config_address {
	char host[64]; /* numeric, without brackets */
	uint16_t port; /* 0: a free port */
	bool loopback, v6;
};
int config_address_parse(const char *text, struct config_address *ret,
			 struct error *err) _must_check_;
