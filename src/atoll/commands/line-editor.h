/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits one line on a terminal, with a history: keys in, text for the screen out. It reads and writes nothing itself.
 *
 *   line_editor_begin ─▶ line_editor_feed, byte by byte ─▶ LINE_ENTERED: `text` is the line
 *                                                       └▶ LINE_ENDED: ^D on an empty line
 *   after each call the caller writes `screen` to the terminal and empties it
 *
 * A line that is longer than the terminal is wide is shown in part, around the cursor. So no row is ever drawn but the last one.
 */
#pragma once

#include "base/buf.h"

enum { LINE_PROMPT_MAX = 256, LINE_HISTORY_MAX = 500, LINE_KEY_MAX = 8 };

enum line_event { LINE_GOES_ON, LINE_ENTERED, LINE_ENDED };

struct line_editor {
	struct buf text;
	size_t cursor; /* its place in text */
	struct buf screen;
	char prompt[LINE_PROMPT_MAX];
	size_t columns;		/* of the terminal */
	char key[LINE_KEY_MAX]; /* bytes of a key or a character that is not complete */
	size_t key_len;
	char *history[LINE_HISTORY_MAX]; /* oldest first */
	size_t n_history, at;		 /* the shown entry; n_history: the new line … */
	struct buf draft;		 /* … which is kept here meanwhile */
};

void line_editor_init(struct line_editor *e, size_t line_max);
void line_editor_done(struct line_editor *e);
/* An empty line after the prompt. */
void line_editor_begin(struct line_editor *e, const char *prompt, size_t columns);
enum line_event line_editor_feed(struct line_editor *e, char byte);
/* The entered line becomes the newest of the history, unless it is blank or the same as the one before. */
void line_editor_remember(struct line_editor *e);
