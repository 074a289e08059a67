/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a JSON value piece by piece, either as text, at a tenth of the cost of making a tree and printing it,
 * or as a tree, for callers that read it. The code that writes does not know which.
 *
 *   emit_open(e, '{'); emit_key(e, "id"); emit_string(e, id, strlen(id)); emit_close(e, '}');
 *
 * A failure is remembered: emit_text() and emit_tree() then return NULL.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdint.h>

enum { EMIT_DEPTH_MAX = 8 };

struct emitter {
	bool tree;
	bool failed;
	unsigned depth;
	/* text */
	struct buf text;
	bool comma; /* before the next value or key */
	/* tree */
	json_t *root, *open[EMIT_DEPTH_MAX];
	const char *key;
};

/* Text of at most `max` bytes. */
void emit_init_text(struct emitter *e, size_t max);
void emit_init_tree(struct emitter *e);
/* The value so far, for the caller to free; the emitter is empty afterwards. */
char *emit_text(struct emitter *e, size_t *ret_len) _must_check_;
json_t *emit_tree(struct emitter *e) _must_check_;

void emit_open(struct emitter *e, char bracket); /* '{' or '[' */
void emit_close(struct emitter *e, char bracket);
void emit_key(struct emitter *e, const char *key); /* plain ASCII; borrowed until the end */
/* Any bytes: those that are not UTF-8 become U+FFFD. True: that happened. */
bool emit_string(struct emitter *e, const char *data, size_t len);
void emit_word(struct emitter *e, const char *text); /* NULL: null */
void emit_integer(struct emitter *e, int64_t value);
void emit_seconds(struct emitter *e, int64_t us);
void emit_real(struct emitter *e, double value);
void emit_boolean(struct emitter *e, bool value);
void emit_null(struct emitter *e);
/* Adds an existing value; takes no reference. NULL: null. */
void emit_value(struct emitter *e, json_t *value);
