/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings. One table (settings-table.c) gives each its key in atoll.yaml, its variable, its flag, type, bounds,
 * default and help; all readers, the example file and the refusals come from it. The variable of `queue.max` is
 * ATOLL_QUEUE_MAX; limits are `limits.defaults.KEY` and `limits.ceilings.KEY` of spec/knob.h, as ATOLL_LIMITS_DEFAULTS_KEY.
 *
 *   /etc/atoll/atoll.yaml < $XDG_CONFIG_HOME/atoll/atoll.yaml < --config < ATOLL_* < SANDBOX_*, OUTPUT_DATA_PATH, DEBUG < flags
 *
 * The monitor reads them once and hands them to the front as JSON in a sealed memfd (config_to_json, config_from_json), tokens
 * included: the front needs no access to files of root's. Nothing below daemon/ includes this: front-main.c gives the engine
 * and the API what they need in their own option structs.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "spec/limits.h"
#include "spec/presets.h"

#include <jansson.h>
#include <stdbool.h>

/* Behind a token in its file, and in config.tokens: whose it is may see what is of the server as a whole. */
#define CONFIG_OPERATOR_MARK " operator"

enum {
	CONFIG_WORDS_MAX = 64,
	CONFIG_LISTEN_MAX = 15,
	CONFIG_TOKEN_MIN = 16,
	CONFIG_TOKEN_MAX = 512
};

/* The workspace of POST /execute, which output_data_path puts elsewhere. */
#define CONFIG_EXECUTE_WORKSPACE "execute"

enum config_durability { DURABILITY_NORMAL, DURABILITY_FULL };
enum config_execute { EXECUTE_PYTHON, EXECUTE_ALL };

/* Texts and lists live in memory and are never NULL unless it says so; lists end with NULL. Times in ms, sizes in bytes. */
struct config {
	struct arena memory;

	/* Doors */
	const char *const *listen; /* "127.0.0.1:8700", "[::1]:8700" */
	bool listen_named;	/* somebody said where: every address is needed, also port 6000 */
	const char *socket;	/* unix, 0600; "": none */
	const char *token_file; /* "": none */
	const char *const *tokens; /* its lines; any of them opens the door. config_read_tokens() */
	bool token_readable, token_short; /* the file is open to other users; one may be guessed */
	bool allow_unauthenticated;
	const char *const *allow_hosts; /* of Host, beside the addresses listened on */
	const char *const *allow_origins;

	/* Places */
	const char *state_dir;	      /* 0700: history, outputs, workspaces */
	const char *data_dir;	      /* languages/, policies/, runners/; "": found by itself */
	const char *policies_dir;     /* further policies; "": those of data_dir alone */
	const char *const *images;    /* directories below which an image may be; empty: none */
	const char *output_data_path; /* /workspace of POST /execute; "": in the state directory */
	const char *language_config;  /* SANDBOX_LANGUAGE_CONFIG_FILE; "": none */
	const char *language_text;    /* what is in it, JSON; or NULL. config_read_languages() */
	const char *user; /* whom the front runs as when we are root; "": atoll, or FRONT_UID */

	/* What may be run */
	int32_t execute_languages;	  /* enum config_execute */
	struct limits defaults, ceilings; /* complete: shipped values where nobody said anything */
	uint32_t defaults_set, ceilings_set; /* knob_bit()s of what somebody said */
	int64_t adaptive_factor_milli;	     /* of the mean of past runs */
	int64_t adaptive_min_ms;

	/* How much of it */
	int64_t queue_max, queue_per_caller; /* waiting */
	int64_t queue_bytes, queue_bytes_per_caller;
	int64_t queue_running; /* at once; never 0: from cores and memory when nobody said */
	int64_t drain_ms;      /* what runs may take to end on SIGTERM */

	/* HTTP */
	int64_t http_connections_max;
	int64_t http_body_bytes_max;
	int64_t http_header_ms; /* to get a request's head, and to get going with its body */
	int64_t http_idle_ms;	/* between two requests */
	int64_t http_write_ms;	/* without a byte taken by a reader */

	/* History */
	int32_t durability; /* enum config_durability */
	int64_t retention_age_ms, retention_count, retention_bytes;
	int64_t idempotency_ms; /* how long a key is remembered */

	/* Callbacks */
	bool callbacks;
	const char *const
		*callback_hosts; /* "host", "host:port", "*.domain"; empty: any public address */
	int64_t callback_timeout_ms, callback_attempts;

	/* Warm runtimes, kept by the broker */
	int64_t workspace_bytes, workspace_files; /* of each; 0: no bound */
	int64_t pool_memory_bytes;		  /* 0: a 16th of the host's, 1 GiB at most */
	int64_t pool_spares;			  /* of one kind; 0: none */

	/* Logs */
	int32_t log_format;	 /* enum log_format */
	int32_t log_level;	 /* enum log_level */
	const char *log_file;	 /* "": standard error */
	const char *audit_file;	 /* "": none */
	int64_t audit_bytes;	 /* of it, then it is rotated; 0: no bound */
	int64_t audit_files;	 /* that are kept beside it */
	int64_t alert_count;	 /* crashes, denials or near-limit runs of one caller … */
	int64_t alert_window_ms; /* … within this time make an alert */
};

/* Where settings come from; tests give their own. */
struct config_flag {
	const char *key, *value;
};
struct config_source {
	const char *system_file; /* "/etc/atoll/atoll.yaml" */
	const char *named_file;	 /* --config, or NULL: must exist */
	const char *const *env;	 /* environ: "KEY=value", NULL-terminated */
	const struct config_flag
		*flags; /* in order; keys as in the file, values as text; lists: each adds */
	size_t n_flags;
	bool root;
	int32_t cores;
	int64_t memory_bytes; /* of the host */
};

int config_load(const struct config_source *source, struct config *ret,
		struct error *err) _must_check_;
void config_done(struct config *c);
/* Fills tokens from token_file, which nobody but its owner (us, or root) may write. No file named: none. */
int config_read_tokens(struct config *c, struct error *err) _must_check_;
/* Says what is accepted and yet unwise about them. */
void config_warn_of_tokens(const struct config *c, struct log *log);
/* Fills language_text from language_config, once it is known to make sense. No file named: none. */
int config_read_languages(struct config *c, struct error *err) _must_check_;
/* What it says; only where there is one. */
int config_presets(const struct config *c, struct presets *ret, struct error *err) _must_check_;
/* Is everything listened on out of reach of other machines? Otherwise: tokens, or allow_unauthenticated, or a refusal. */
int config_check_exposure(const struct config *c, struct error *err) _must_check_;

/* All of it, tokens too. NULL: no memory. */
json_t *config_to_json(const struct config *c);
int config_from_json(const json_t *root, struct config *ret, struct error *err) _must_check_;

/* An address of `listen`, taken apart. */
struct config_address {
	char host[64]; /* numeric, without brackets */
	uint16_t port; /* 0: any that is free */
	bool loopback, v6;
};
int config_address_parse(const char *text, struct config_address *ret,
			 struct error *err) _must_check_;
