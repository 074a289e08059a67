/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large texts of executions: a request or a result from TEXT_FILE_BYTES on lies in a file of its own (HISTORY_REQUEST,
 * HISTORY_RESULT) and its row has "" instead. SQLite would copy it several times over, in the loop's time; a file is written
 * and read on the worker (base/loop/worker.h), if the caller is on a fiber, without holding up the loop. A file without a
 * row is swept like any other.
 */
#pragma once

#include "base/span.h"
#include "engine/history/history.h"

#include <jansson.h>

enum { TEXT_FILE_BYTES = 256 << 10 };

struct text_place {
	struct history *history;
	const char *id;
	enum history_stream which;
	bool full; /* durability: it is on the disk when it is said to be kept */
};

/* On failure nothing is left. */
int text_save(const struct text_place *place, struct span text) _must_check_;
/* Of one that was saved; 0: it is not there. */
int64_t text_saved_bytes(const struct text_place *place);
/* row: what the row has; taken over when it is the text itself. NUL-terminated, to be freed. */
int text_load(const struct text_place *place, char **row, char **ret) _must_check_;
/* The same, as JSON. */
int text_load_json(const struct text_place *place, char **row, json_t **ret) _must_check_;
/* NULL: the text is no JSON object or array, or no memory. */
json_t *text_parse(struct span text);
/* Compact, with these flags of jansson's beside. NULL: no memory. */
char *text_dump(json_t *tree, size_t flags);
