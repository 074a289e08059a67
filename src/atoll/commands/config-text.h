/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds a server to the configuration file of an MCP client: text in, text out.
 *
 * The file belongs to its user. So nothing is parsed and written anew: the entry is inserted as text, in the file's own
 * indentation and line ends, and every other byte stays, comments too. For JSON, the new text is read back and compared with the old
 * one before it is given out: they must differ in the entry and in nothing else.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

#include <jansson.h>

/* Larger files are refused. */
enum { CONFIG_TEXT_MAX = 64 << 20 };

struct config_entry {
	const char
		*table; /* key of the file's object (JSON) or table (TOML) that holds the servers */
	const char *name; /* the server's name in it */
	json_t *value;	  /* an object of texts, booleans and lists of texts */
	bool replace;	  /* an entry of this name that says something else is replaced */
};

enum config_change {
	CONFIG_SAME, /* the file has an entry of this name, with all that `value` says; out is empty */
	CONFIG_ADDED,
	CONFIG_REPLACED,
};

struct config_format {
	const char *name; /* "json" */
	/*
	 * text.data[text.len] is NUL. Writes the whole new text to out. Returns an enum config_change, or negative:
	 *  -EINVAL: the text is not in this format, or the place of the entry is taken by something else;
	 *  -EEXIST: an entry of this name says something else, and `replace` is false.
	 */
	int (*set)(struct span text, const struct config_entry *entry, struct buf *out,
		   struct error *err);
	/* What an empty file becomes: the snippet that the documentation shows. */
	int (*print)(const struct config_entry *entry, struct buf *out);
};
extern const struct config_format config_json, config_toml;

/* The one sentence for an entry that says something else; -EEXIST. */
int config_entry_differs(const struct config_entry *entry, struct error *err);
