/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. doc/atoll.yaml.example shows all settings; a test compares the two. */
#include "atoll/daemon/settings.h"

#include "run/broker-choice.h"

#define SECONDS(n)     ((n)*MS_PER_SEC)
#define HOURS(n)       SECONDS((n)*3600LL)
#define OFFSET(member) .offset = offsetof(struct config, member)
#define COUNT(low, high, usual)                                                                    \
	{                                                                                          \
		.kind = KNOB_COUNT, .min = (low), .max = (high), .preset = (usual)                 \
	}
#define TIME(low, high, usual)                                                                     \
	{                                                                                          \
		.kind = KNOB_TIME, .min = (low), .max = (high), .preset = (usual)                  \
	}
#define SIZE(low, high, usual)                                                                     \
	{                                                                                          \
		.kind = KNOB_SIZE, .min = (low), .max = (high), .preset = (usual)                  \
	}
/* 0 is written "none": no bound. */
#define OR_NONE(unit, low, high, usual)                                                            \
	{                                                                                          \
		.kind = (unit), .min = (low), .max = (high), .preset = (usual), .none_ok = true,   \
		.zero_ok = true                                                                    \
	}

static const char *const execute_words[] = { "python", "all", NULL };
static const char *const durability_words[] = { "normal", "full", NULL };
static const char *const format_words[] = { "logfmt", "json", NULL };
static const char *const level_words[] = { "debug", "info", "warning", "error", NULL };

const struct setting settings[] = {
	{ "listen", "--listen", "ADDR:PORT", SETTING_WORDS, OFFSET(listen), .preset = NULL,
	  .help = "listen on this address (repeatable) [127.0.0.1:8700, 127.0.0.1:6000]" },
	{ "socket", "--socket", "PATH", SETTING_PATH, OFFSET(socket), .preset = NULL,
	  .help = "unix socket, `off` for none [/run/atoll/atoll.sock; users: "
		  "$XDG_RUNTIME_DIR/atoll/atoll.sock]" },
	{ "state_dir", "--state-dir", "DIR", SETTING_PATH, OFFSET(state_dir), .preset = NULL,
	  .help = "history, outputs, workspaces [/var/lib/atoll; users: $XDG_STATE_HOME/atoll]" },
	{ "token_file", "--token-file", "FILE", SETTING_PATH, OFFSET(token_file), .preset = "",
	  .help = "tokens for Authorization: Bearer, one a line (mode 0600)" },
	{ "allow_unauthenticated", "--allow-unauthenticated", NULL, SETTING_BOOL,
	  OFFSET(allow_unauthenticated),
	  .help = "accept requests of other machines without a token" },
	{ "allow_hosts", "--allow-host", "NAME", SETTING_WORDS, OFFSET(allow_hosts), .preset = "",
	  .help = "also accept requests whose Host is this name (repeatable)" },
	{ "allow_origins", "--allow-origin", "URL", SETTING_WORDS, OFFSET(allow_origins),
	  .preset = "", .help = "also accept requests of pages from this origin (repeatable)" },
	{ "mcp.resource", NULL, NULL, SETTING_TEXT, OFFSET(mcp_resource), .preset = "",
	  .help = "URL of /mcp as clients reach it, for OAuth's resource metadata" },
	{ "mcp.issuers", NULL, NULL, SETTING_WORDS, OFFSET(mcp_issuers), .preset = "",
	  .help = "authorization servers that hand out the tokens of token_file" },
	{ "data_dir", "--data-dir", "DIR", SETTING_PATH, OFFSET(data_dir), .preset = "",
	  .help = "directory with languages/, policies/, runners/ [found automatically]" },
	{ "policies_dir", "--policies-dir", "DIR", SETTING_PATH, OFFSET(policies_dir), .preset = "",
	  .help = "directory of further policies" },
	{ "images", NULL, NULL, SETTING_WORDS, OFFSET(images), .preset = "",
	  .help = "directories below which callers may choose an image" },
	{ "output_data_path", "--output-data-path", "DIR", SETTING_PATH, OFFSET(output_data_path),
	  .preset = "", .help = "/workspace of POST /execute [in the state directory]" },
	{ "workspaces.bytes", NULL, NULL, SETTING_NUMBER, OFFSET(workspace_bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * 1024 * GiB, WORKSPACE_BYTES),
	  .help = "bytes of one workspace" },
	{ "workspaces.files", NULL, NULL, SETTING_NUMBER, OFFSET(workspace_files),
	  .number = OR_NONE(KNOB_COUNT, 1, 1000000000, WORKSPACE_INODES),
	  .help = "files and directories of one workspace" },
	{ "language_config", NULL, NULL, SETTING_PATH, OFFSET(language_config), .preset = "",
	  .help = "JSON file of Codomyrmex with defaults by language" },
	{ "user", "--user", "NAME", SETTING_TEXT, OFFSET(user), .preset = "",
	  .help = "run the front as this user when started by root [atoll, else a uid of its "
		  "own]" },
	{ "execute_languages", "--execute-languages", "WORD", SETTING_CHOICE,
	  OFFSET(execute_languages), .choices = execute_words,
	  .help = "languages of POST /execute: python or all [python]" },
	{ "adaptive.factor", NULL, NULL, SETTING_NUMBER, OFFSET(adaptive_factor_milli),
	  .number = { .kind = KNOB_CPUS, .min = 1000, .max = 100000, .preset = 2500 },
	  .help = "adaptive timeout: factor on the mean of past runs" },
	{ "adaptive.min", NULL, NULL, SETTING_NUMBER, OFFSET(adaptive_min_ms),
	  .number = TIME(1, HOURS(24), SECONDS(5)), .help = "adaptive timeout: minimum" },
	{ "queue.max", NULL, NULL, SETTING_NUMBER, OFFSET(queue_max),
	  .number = COUNT(1, 100000, 1024), .help = "queued executions; more get 429" },
	{ "queue.per_caller", NULL, NULL, SETTING_NUMBER, OFFSET(queue_per_caller),
	  .number = COUNT(1, 100000, 256),
	  .help = "queued executions of one caller; as many requests wait for their result" },
	{ "queue.bytes", NULL, NULL, SETTING_NUMBER, OFFSET(queue_bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * GiB, 4 * GiB),
	  .help = "bytes of all queued bodies together; more get 429" },
	{ "queue.bytes_per_caller", NULL, NULL, SETTING_NUMBER, OFFSET(queue_bytes_per_caller),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * GiB, GiB),
	  .help = "bytes of the queued bodies of one caller" },
	{ "sessions.max", NULL, NULL, SETTING_NUMBER, OFFSET(sessions_max),
	  .number = COUNT(1, 100000, 1000), .help = "live sessions; more get 429" },
	{ "sessions.per_caller", NULL, NULL, SETTING_NUMBER, OFFSET(sessions_per_caller),
	  .number = COUNT(1, 100000, 1000),
	  .help = "live sessions of one caller; never above 7/8 of sessions.max" },
	{ "sessions.host_calls", NULL, NULL, SETTING_NUMBER, OFFSET(sessions_host_calls),
	  .number = COUNT(1, 10000, 100), .help = "host calls of one execution" },
	{ "queue.running", "--running", "N", SETTING_NUMBER, OFFSET(queue_running),
	  .number = OR_NONE(KNOB_COUNT, 1, 4096, 0),
	  .help = "executions at once [from cores and memory]" },
	{ "queue.judging", NULL, NULL, SETTING_NUMBER, OFFSET(queue_judging),
	  .number = OR_NONE(KNOB_COUNT, 1, 4096, 0),
	  .help = "executions with tests at once [one a core]" },
	{ "drain", "--drain", "TIME", SETTING_NUMBER, OFFSET(drain_ms),
	  .number = TIME(0, HOURS(24), SECONDS(30)),
	  .help = "time for running executions to end after SIGTERM [30s]" },
	{ "http.connections_max", NULL, NULL, SETTING_NUMBER, OFFSET(http_connections_max),
	  .number = COUNT(1, 100000, 4096), .help = "open connections" },
	{ "http.body_max", NULL, NULL, SETTING_NUMBER, OFFSET(http_body_bytes_max),
	  .number = SIZE(KiB, 320 * MiB, 64 * MiB), .help = "bytes of a request's body" },
	{ "http.header_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http_header_ms),
	  .number = TIME(100, HOURS(1), SECONDS(10)),
	  .help = "time until the head of a request is complete" },
	{ "http.body_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http_body_ms),
	  .number = TIME(100, HOURS(1), SECONDS(30)),
	  .help = "time that a body, or a message of a WebSocket, may stand still" },
	{ "http.idle_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http_idle_ms),
	  .number = TIME(100, HOURS(24), SECONDS(75)),
	  .help = "time between two requests of a connection" },
	{ "http.write_timeout", NULL, NULL, SETTING_NUMBER, OFFSET(http_write_ms),
	  .number = TIME(100, HOURS(1), SECONDS(30)),
	  .help = "time until a stalled reader is disconnected" },
	{ "durability", "--durability", "WORD", SETTING_CHOICE, OFFSET(durability),
	  .choices = durability_words,
	  .help = "normal: survives kill -9; full: also a power cut [normal]" },
	{ "retention.age", NULL, NULL, SETTING_NUMBER, OFFSET(retention_age_ms),
	  .number = OR_NONE(KNOB_TIME, SECONDS(1), HOURS(24LL * 3660), HOURS(24 * 30)),
	  .help = "delete executions that are older than this" },
	{ "retention.count", NULL, NULL, SETTING_NUMBER, OFFSET(retention_count),
	  .number = OR_NONE(KNOB_COUNT, 1, 100000000, 1000000),
	  .help = "delete the oldest executions beyond this number" },
	{ "retention.bytes", NULL, NULL, SETTING_NUMBER, OFFSET(retention_bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * 1024 * GiB, 10 * GiB),
	  .help = "delete the oldest executions beyond this size" },
	{ "idempotency", NULL, NULL, SETTING_NUMBER, OFFSET(idempotency_ms),
	  .number = OR_NONE(KNOB_TIME, SECONDS(1), HOURS(24 * 30), 0),
	  .help = "time that an Idempotency-Key is remembered [as long as its execution]" },
	{ "network.allow", NULL, NULL, SETTING_BOOL, OFFSET(network),
	  .help = "let programs reach other machines where their policy permits it" },
	{ "callbacks.allow", NULL, NULL, SETTING_BOOL, OFFSET(callbacks),
	  .help = "accept callback_url in requests" },
	{ "callbacks.hosts", NULL, NULL, SETTING_WORDS, OFFSET(callback_hosts), .preset = "",
	  .help = "allowed targets: host, host:port, *.domain [any public address]" },
	{ "callbacks.secret_file", NULL, NULL, SETTING_PATH, OFFSET(callback_secret_file),
	  .preset = "",
	  .help = "secrets that callbacks are signed with, whsec_… one a line (mode 0600)" },
	{ "callbacks.timeout", NULL, NULL, SETTING_NUMBER, OFFSET(callback_timeout_ms),
	  .number = TIME(100, SECONDS(300), SECONDS(10)), .help = "time of one attempt" },
	{ "callbacks.attempts", NULL, NULL, SETTING_NUMBER, OFFSET(callback_attempts),
	  .number = COUNT(1, 20, 5), .help = "attempts for one result" },
	{ "pool.auto", NULL, NULL, SETTING_BOOL, OFFSET(pool_auto),
	  .help = "`atoll run` leaves a pool behind, as with ATOLL_POOL=auto; the daemon has its "
		  "own" },
	{ "pool.memory", NULL, NULL, SETTING_NUMBER, OFFSET(pool_memory_bytes),
	  .number = OR_NONE(KNOB_SIZE, MiB, 1024 * GiB, 0),
	  .help = "memory of all spares and interpreters [a 16th of the host's, at most 1g]" },
	{ "pool.spares", NULL, NULL, SETTING_NUMBER, OFFSET(pool_spares),
	  .number = COUNT(0, 4096, 128), .help = "spares of one kind" },
	{ "log.format", "--log-format", "WORD", SETTING_CHOICE, OFFSET(log_format),
	  .choices = format_words, .help = "logfmt or json [logfmt]" },
	{ "log.level", "--log-level", "WORD", SETTING_CHOICE, OFFSET(log_level),
	  .choices = level_words, .number.preset = LOG_INFO,
	  .help = "debug, info, warning or error [info]" },
	{ "log.file", "--log-file", "FILE", SETTING_PATH, OFFSET(log_file), .preset = "",
	  .help = "instead of standard error" },
	{ "audit.file", "--audit-file", "FILE", SETTING_PATH, OFFSET(audit_file), .preset = NULL,
	  .help = "audit events, `off` for none [audit.log in the state directory]" },
	{ "audit.size", NULL, NULL, SETTING_NUMBER, OFFSET(audit_bytes),
	  .number = OR_NONE(KNOB_SIZE, 64 * KiB, 1024 * GiB, 64 * MiB),
	  .help = "size at which the file is rotated, checked every second" },
	{ "audit.files", NULL, NULL, SETTING_NUMBER, OFFSET(audit_files),
	  .number = COUNT(1, 1000, 8), .help = "old files that are kept, as FILE.1 and so on" },
	{ "audit.alert_count", NULL, NULL, SETTING_NUMBER, OFFSET(alert_count),
	  .number = COUNT(1, 1000000, 10),
	  .help = "crashes, denials or near-limit runs of one caller that cause an alert" },
	{ "audit.alert_window", NULL, NULL, SETTING_NUMBER, OFFSET(alert_window_ms),
	  .number = TIME(SECONDS(1), HOURS(24), SECONDS(60)),
	  .help = "time within which they are counted" },
};
const size_t settings_count = ARRAY_SIZE(settings);
