/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON value, told piece by piece to whoever wants it: as text, which costs a tenth of what making a tree and printing it does,
 * or as a tree, for those who look into it. Whoever tells does not know which.
 *
 *   emit_open(e, '{'); emit_key(e, "id"); emit_string(e, id, strlen(id)); emit_close(e, '}');
 *
 * What fails is remembered: emit_text() and emit_tree() then give NULL.
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
/* What was told, for the caller to free; the emitter is empty afterwards. */
char *emit_text(struct emitter *e, size_t *ret_len) _must_check_;
json_t *emit_tree(struct emitter *e) _must_check_;

void emit_open(struct emitter *e, char bracket); /* '{' or '[' */
void emit_close(struct emitter *e, char bracket);
void emit_key(struct emitter *e, const char *key); /* plain ASCII, and stays where it is */
/* Any bytes: what is not UTF-8 becomes U+FFFD. True: that happened. */
bool emit_string(struct emitter *e, const char *data, size_t len);
void emit_word(struct emitter *e, const char *text); /* NULL: null */
void emit_integer(struct emitter *e, int64_t value);
void emit_seconds(struct emitter *e, int64_t us);
void emit_real(struct emitter *e, double value);
void emit_boolean(struct emitter *e, bool value);
void emit_null(struct emitter *e);
/* Somebody else's; NULL: null. */
void emit_value(struct emitter *e, json_t *value);
