/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with words. A function that can fail in a way a user will read takes a `struct error *`
 * as its last parameter, returns a negative errno, and leaves the struct untouched on success.
 * The struct is plain data of fixed size: no heap, fits a socket record, copied by assignment.
 *
 * `code` names the kind of failure, in the same words for every interface. Each interface maps the codes in one table of its
 * own: web/http/problem.c to statuses, compat/execute to its documents, atoll/commands/printer.c to exit codes. Callers decide by `code`, never by
 * `errnum`, which is the cause of an error in the words of the kernel. `text` is one sentence without a final newline.
 */
#pragma once

#include "base/macro.h"

/* The numbers are part of the records between front and broker. */
enum error_code {
	ERROR_NONE,
	ERROR_INTERNAL,	   /* Atoll failed */
	ERROR_INPUT,	   /* the request is wrong; `field` may name the key */
	ERROR_POLICY,	   /* the policy refuses the request */
	ERROR_RUNTIME,	   /* unknown language or missing runtime */
	ERROR_STORAGE,	   /* the disk is full or not writable */
	ERROR_TOO_LARGE,   /* the request unpacks to more than is allowed */
	ERROR_NOT_FOUND,   /* what the request names does not exist, or is another caller's */
	ERROR_NOT_ENDED,   /* the execution still waits or runs */
	ERROR_ENDED,	   /* the execution has ended already */
	ERROR_KEY_PENDING, /* the first request with this Idempotency-Key is not durable yet */
	ERROR_KEY_REUSED,  /* this Idempotency-Key was used with another body */
	ERROR_BUSY,	   /* the queue or the broker is full: nothing has begun */
	ERROR_NO_ROOM,	   /* the server lacks memory or connections for this request */
	ERROR_NOT_READY,   /* no broker has answered yet */
	ERROR_STOPPING,	   /* the server takes no new work */
	ERROR_LOST,	   /* the broker died, and the run with it */
	ERROR_CONFLICT,	   /* the state of what the request names does not permit it */
	/* The request has a callback_url, and the settings allow none. */
	ERROR_CALLBACKS_OFF,
	_ERROR_MAX,
};

struct error {
	int32_t code;
	int32_t errnum;
	int32_t retry_after_s; /* when the same request may succeed; 0: not known */
	char field[64];	       /* the request's key that is at fault, or "" */
	char text[436];
};

/* The one sentence for a failed allocation; -ENOMEM. err may be NULL. */
int error_oom(struct error *err);
/* Each returns -errnum (never 0) so that `return error_set(...)` reads well. err may be NULL. */
int error_set(struct error *err, enum error_code code, int errnum, const char *fmt, ...)
	_printf_(4, 5);
int error_field(struct error *err, const char *field, const char *fmt, ...) _printf_(3, 4);
/* The same for a value that the policy, not its form, forbids: ERROR_POLICY, EPERM. */
int error_refuse(struct error *err, const char *field, const char *fmt, ...) _printf_(3, 4);
/* Adds when to try again to an error that is set; returns r. */
int error_retry(struct error *err, int r, int32_t after_s);
/* Prefixes "context: " to the text already there; returns r. */
int error_wrap(struct error *err, int r, const char *fmt, ...) _printf_(3, 4);
