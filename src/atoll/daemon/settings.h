/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table behind config.h: one row a setting. A value is a JSON tree (from a file, or made from the text of a
 * variable or flag). A refusal names key, value and the allowed values. Limits are not in this table: they are
 * in spec/knob.h.
 */
#pragma once

#include "atoll/daemon/config.h"
#include "spec/knob.h"

enum setting_kind {
	SETTING_NUMBER,
	SETTING_BOOL,
	SETTING_CHOICE,
	SETTING_TEXT,
	SETTING_PATH,
	SETTING_WORDS,
};

struct setting {
	const char *key;  /* "queue.max" */
	const char *flag; /* NULL: only --set KEY=VALUE */
	const char *argument;
	enum setting_kind kind;
	size_t offset;		    /* in struct config */
	struct knob number;	    /* unit, bounds and default of numbers; default of choices */
	const char *const *choices; /* the index is the value; ends with NULL */
	const char *preset;	    /* of texts and lists; NULL: config_load() derives it */
	const char *help;
};

extern const struct setting settings[];
extern const size_t settings_count;

const struct setting *setting_find(const char *key);
/* The variable's name: ATOLL_QUEUE_MAX. */
void setting_variable(const char *key, char *ret, size_t size);

void settings_presets(struct config *c);
int setting_apply(const struct setting *s, const json_t *value, struct config *c,
		  struct error *err) _must_check_;
/* NULL: no memory. */
json_t *setting_to_json(const struct setting *s, const struct config *c);

json_t *settings_list_to_json(const char *const *words);

/* Applies a whole tree of settings and limits, as in a file. */
int settings_apply_tree(const json_t *root, struct config *c, struct error *err) _must_check_;
/* Applies one setting, by its whole key, from text. */
int settings_apply_text(const char *key, const char *text, struct config *c,
			struct error *err) _must_check_;
