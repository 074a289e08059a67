/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign text: what a program, a file's name or another caller says, on its way to a terminal. Escaped, it cannot move the cursor, set
 * a title, reverse the direction of writing or, where one line is expected, begin another one.
 */
#pragma once

#include "base/buf.h"

enum foreign_form {
	FOREIGN_LINE,	/* one line: line breaks and tabs are escaped too */
	FOREIGN_LINES,	/* line breaks and tabs stay */
	FOREIGN_QUOTED, /* one line between double quotes, which are added */
	FOREIGN_JSON, /* JSON, lines of it: the escapes are JSON's own, so that it means the same */
};
/*
 * Appends the text. Hidden characters (utf8.h) become \xNN or \uNNNN, bytes that are not UTF-8 \xNN. Escaping twice changes nothing,
 * but for FOREIGN_QUOTED.
 */
int foreign_put(struct buf *out, const char *data, size_t n, enum foreign_form form) _must_check_;
