/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with words. A function that can fail in a way a user will read takes a `struct error *`
 * as its last parameter, returns a negative errno, and leaves the struct untouched on success.
 * It is plain data of fixed size: no heap, fits a socket record, copied by assignment.
 *
 * `code` says who must act and becomes the exit code of the command line and the status of an API
 * answer; `errnum` is the cause; `text` is one sentence without a final newline.
 */
#pragma once

#include "base/macro.h"

enum error_code {
	ERROR_NONE,
	ERROR_INTERNAL, /* we failed: exit 125 */
	ERROR_INPUT,	/* the request is wrong: exit 125, HTTP 400 */
	ERROR_POLICY,	/* refused: exit 126, HTTP 403 */
	ERROR_RUNTIME,	/* unknown language or missing runtime: exit 127 */
	ERROR_STORAGE,	/* disk full or not writable: exit 125, HTTP 503 */
	_ERROR_MAX,
};

struct error {
	int32_t code;
	int32_t errnum;
	char field[64]; /* the request's key that is at fault, or "" */
	char text[440];
};

/* The one sentence for a failed allocation; -ENOMEM. err may be NULL. */
int error_oom(struct error *err);
/* Each returns -errnum (never 0) so that `return error_set(...)` reads well. err may be NULL. */
int error_set(struct error *err, enum error_code code, int errnum, const char *fmt, ...)
	_printf_(4, 5);
int error_field(struct error *err, const char *field, const char *fmt, ...) _printf_(3, 4);
/* Prefixes "context: " to the text already there; returns r. */
int error_wrap(struct error *err, int r, const char *fmt, ...) _printf_(3, 4);
