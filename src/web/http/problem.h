/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API errors as RFC 9457 problem+json: {"type", "title", "status", "code", "detail", "field"?}.
 * `code` is for programs (a stable snake_case word), `detail` for people: one sentence without host
 * paths that says what to do. problem.c maps every code of base/error.h in one table. Problems of HTTP itself (a method, an
 * encoding, a range) have their status where they are found. A program's failure is no problem but a result (200).
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

struct request_ctx;

struct problem {
	int status;	    /* 0: no problem */
	const char *code;   /* "not_found" */
	const char *detail; /* any text: control characters and bad UTF-8 are replaced */
	const char *field;  /* the request's key at fault, or NULL or "" */
};

#define NO_PROBLEM ((struct problem){ 0 })
#define PROBLEM(status_, code_, detail_)                                                           \
	((struct problem){ .status = (status_), .code = (code_), .detail = (detail_) })

/* NULL: no memory. */
json_t *problem_to_json(const struct problem *p);
/* For an error that carries its own words; the text lives as long as err. */
struct problem problem_from_error(const struct error *err);
struct problem problem_no_memory(void);

/* Answers a request with it (respond.h's rules). Each returns 0 so that `return respond_…` reads well. */
int respond_with(struct request_ctx *ctx, const struct problem *p);
int respond_problem(struct request_ctx *ctx, int status, const char *code, const char *fmt, ...)
	_printf_(4, 5);
/* With Retry-After where the error says when. */
int respond_error(struct request_ctx *ctx, const struct error *err);
/* 400, code "invalid_field" */
int respond_field(struct request_ctx *ctx, const char *field, const char *fmt, ...) _printf_(3, 4);
int respond_internal(struct request_ctx *ctx);	/* the server failed */
int respond_no_memory(struct request_ctx *ctx); /* it may work later */
