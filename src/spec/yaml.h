/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text into a jansson tree, so that files, policies and API bodies share one validator. Only the JSON-like
 * core is accepted: mappings with unique string keys, sequences, scalars (plain scalars become null, booleans,
 * integers, reals or strings as in YAML 1.2's core schema; quoted ones are strings). Anchors, aliases, tags and
 * several documents are refused; depth is bounded.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

#include <jansson.h>
#include <stdbool.h>

enum {
	YAML_DEPTH_MAX = 32,
	YAML_BYTES_MAX = 1 << 20,
	JSON_DEPTH_MAX = 64,
	JSON_BYTES_MAX = 320 << 20
};

/* A text, and its name in messages ("policies/default.yaml:3: …"). */
struct document {
	const char *name;
	const char *text;
	size_t len;
};

int yaml_parse(const struct document *doc, json_t **ret, struct error *err) _must_check_;
/*
 * Prefixes err, the refusal of a value of this document (YAML or JSON), with its name and, if the text has err's
 * field, with line and column of that key. Returns r.
 */
int yaml_place(const struct document *doc, int r, struct error *err);
/* At most JSON_VALUES_MAX values: a tree of them takes 64 times the memory of its text. */
enum { JSON_VALUES_MAX = 1 << 18 };
bool json_has_few_values(struct span text);
/* JSON with duplicate keys refused, size and depth bounded. Strings may hold NUL bytes. */
int json_parse(const struct document *doc, json_t **ret, struct error *err) _must_check_;

/*
 * NaN, Infinity, -Infinity: other JSON libraries (Python's among them) read and write these words, which JSON
 * does not have.
 */
enum { JSON_CONSTANTS = 3 };

/* The text with each of them outside of strings replaced, in the order above. */
int json_replace_constants(struct span text, const char *const by[JSON_CONSTANTS],
			   struct buf *out) _must_check_;
