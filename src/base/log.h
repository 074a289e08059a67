/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured logs: one record a line, as logfmt or JSON, with one write().
 *
 *	log_say(log, LOG_WARNING, "broker died", LOG_I64("pid", pid), LOG_TEXT("reason", why));
 *	time=2026-11-15T10:00:00.123Z level=warning msg="broker died" pid=4711 reason="signal 9"
 *
 * Values may come from callers and programs. A record is always one line of valid UTF-8 without control
 * characters, values cannot end their quotes, and a line has at most LOG_LINE_MAX bytes: longer values are cut
 * and end with "…". Keys are literals in the source: lower case letters, digits and _.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

enum { LOG_LINE_MAX = 4096, LOG_VALUE_MAX = 1024 };

enum log_format { LOG_LOGFMT, LOG_JSON };
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, _LOG_LEVEL_MAX };

enum log_kind {
	LOG_KIND_NONE,
	LOG_KIND_TEXT,
	LOG_KIND_BYTES,
	LOG_KIND_I64,
	LOG_KIND_MS,
	LOG_KIND_US,
	LOG_KIND_BOOL
};

struct log_field {
	const char *key;
	enum log_kind kind;
	const char *text; /* NULL: the field is left out */
	size_t len;	  /* LOG_KIND_BYTES */
	int64_t number;
};

#define LOG_TEXT(k, v) ((struct log_field){ .key = (k), .kind = LOG_KIND_TEXT, .text = (v) })
#define LOG_BYTES(k, v, n)                                                                         \
	((struct log_field){ .key = (k), .kind = LOG_KIND_BYTES, .text = (v), .len = (n) })
#define LOG_I64(k, v) ((struct log_field){ .key = (k), .kind = LOG_KIND_I64, .number = (v) })
/* A time in ms, printed in seconds: 1500 becomes 1.500. */
#define LOG_MS(k, v)   ((struct log_field){ .key = (k), .kind = LOG_KIND_MS, .number = (v) })
#define LOG_US(k, v)   ((struct log_field){ .key = (k), .kind = LOG_KIND_US, .number = (v) })
#define LOG_BOOL(k, v) ((struct log_field){ .key = (k), .kind = LOG_KIND_BOOL, .number = (v) })

struct log {
	int fd; /* owned by the caller; negative: nothing is written */
	enum log_format format;
	enum log_level level; /* records below this level are not written */
	const char *who;      /* "monitor", "front": field `who`, or NULL */
	uint64_t lost;	      /* records that could not be written */
};

/* The last field has kind LOG_KIND_NONE. */
void log_record(struct log *l, enum log_level level, const char *message,
		const struct log_field *fields);
#define log_say(l, level, message, ...)                                                            \
	log_record(                                                                                \
		(l), (level), (message),                                                           \
		(const struct log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ .kind = LOG_KIND_NONE } })

const char *log_level_name(enum log_level level);
/* Formats the line with its newline into ret; returns its length. size is at least LOG_LINE_MAX + 1. */
size_t log_format_record(const struct log *l, enum log_level level, const char *message,
			 const struct log_field *fields, char *ret);
