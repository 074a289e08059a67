/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See source.h. A request holds the program as `code`, and further files in `files`. In the sandbox the program
 * is main.<ext>, the name in `entry`, or its public class's name. A path that is no file of the request and
 * looks like one of those is the program. The code of the second of several stages is main-2.<ext>.
 */
#include "run/analyse/source.h"

#include "base/base64.h"
#include "run/analyse/ending.h"
#include "spec/utf8-json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT_LINES = 2, SHOWN_BYTES = 200, EXCERPT_BYTES = 4096, DECODED_MAX = 16 << 20 };

void source_done(struct program_source *src)
{
	buf_done(&src->decoded);
}

/* Text, or {"base64": …}. */
static struct span bytes_of(struct program_source *src, const json_t *value)
{
	const json_t *coded = json_object_get(value, "base64");
	_cleanup_free_ char *room = NULL;
	size_t len = 0;

	if (json_is_string(value))
		return (struct span){ json_string_value(value), json_string_length(value) };
	if (!json_is_string(coded) || json_string_length(coded) > DECODED_MAX)
		return (struct span){ 0 };
	room = malloc(base64_decoded_max(json_string_length(coded)));
	buf_done(&src->decoded);
	buf_init(&src->decoded, DECODED_MAX);
	if (!room ||
	    base64_decode(json_string_value(coded), json_string_length(coded), room, &len) < 0 ||
	    buf_append(&src->decoded, room, len) < 0)
		return (struct span){ 0 };
	return (struct span){ src->decoded.data, src->decoded.len };
}

/* "code" of a stage, counted from 1, or NULL. */
static const json_t *stage_code(const struct program_source *src, size_t number)
{
	const json_t *stages = json_object_get(src->request, "stages");
	const json_t *code = json_object_get(json_array_get(stages, number - 1), "code");

	return json_is_string(code) ? code : NULL;
}

void source_enter_stage(struct program_source *src, const char *name)
{
	const json_t *stages = json_object_get(src->request, "stages"), *stage;
	size_t n = sizeof(ANALYSE_COMPILE ":") - 1, i;

	if (strncmp(name, ANALYSE_COMPILE ":", n) == 0)
		name += n;
	json_array_foreach((json_t *)(uintptr_t)stages, i, stage)
	{
		const char *own = json_string_value(json_object_get(stage, "name"));
		char usual[32];

		(void)snprintf(usual, sizeof(usual), "stage-%zu", i + 1);
		if (strcmp(own ? own : usual, name) == 0 && stage_code(src, i + 1))
			src->stage = i + 1;
	}
}

static struct span program_code(struct program_source *src)
{
	const char *entry = json_string_value(json_object_get(src->request, "entry"));
	const json_t *code = json_object_get(src->request, "code");

	if (!code && entry)
		code = json_object_get(json_object_get(src->request, "files"), entry);
	return bytes_of(src, code);
}

struct span source_code(struct program_source *src)
{
	return src->stage > 0 ? bytes_of(src, stage_code(src, src->stage)) : program_code(src);
}

/* The program's text, by its name in the sandbox; data NULL: no such name. */
static struct span program_text(struct program_source *src, const char *name)
{
	const char *entry = json_string_value(json_object_get(src->request, "entry"));
	size_t n = strlen(name), number = 0, at = 5;

	if (entry ? strcmp(name, entry) == 0 : strncmp(name, "main.", 5) == 0)
		return program_code(src);
	if (!strchr(name, '/') && n > 5 && strcmp(name + n - 5, ".java") == 0)
		return source_code(src);
	if (strncmp(name, "main-", 5) != 0)
		return (struct span){ 0 };
	for (; at < 8 && isdigit((unsigned char)name[at]); at++)
		number = number * 10 + (size_t)(name[at] - '0');
	return number > 0 && name[at] == '.' ? bytes_of(src, stage_code(src, number))
					     : (struct span){ 0 };
}

struct span source_text(struct program_source *src, const char *path)
{
	const char *name = path + sizeof(ANALYSE_WORK);
	const json_t *file;

	if (strncmp(path, ANALYSE_WORK "/", sizeof(ANALYSE_WORK)) != 0)
		return (struct span){ 0 };
	file = json_object_get(json_object_get(src->request, "files"), name);
	if (file)
		return bytes_of(src, file);
	return program_text(src, name);
}

struct span source_line(struct span text, int64_t number)
{
	struct span line = { 0 };

	if (number < 1)
		return line;
	for (int64_t i = 0; i < number; i++) {
		if (text.len == 0)
			return (struct span){ 0 };
		line = text_line(&text);
	}
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Whether the line contains the words; blanks are ignored in both. */
static bool line_has(struct span line, struct span words)
{
	for (size_t from = 0; from < line.len; from++) {
		size_t at = from, i = 0;

		if (isspace((unsigned char)line.data[from]))
			continue;
		while (i < words.len && at < line.len) {
			if (isspace((unsigned char)words.data[i]))
				i++;
			else if (isspace((unsigned char)line.data[at]))
				at++;
			else if (words.data[i] != line.data[at])
				break;
			else
				i++, at++;
		}
		if (i == words.len)
			return true;
	}
	return false;
}

/* Searches at most *left bytes, and subtracts them. */
static bool search(struct span text, struct span words, enum source_search how, size_t *left,
		   int64_t *ret)
{
	int64_t number = 0, found = 0;

	text.len = MIN(text.len, *left);
	*left -= text.len;
	while (text.len > 0) {
		struct span line = text_line(&text);

		number++;
		line.len = MIN(line.len, (size_t)SHOWN_BYTES);
		if (!line_has(line, words))
			continue;
		if (found && how == SEARCH_ONLY)
			return false;
		found = number;
	}
	*ret = found;
	return found > 0;
}

void source_locate(struct program_source *src, struct finding *f, struct span words,
		   enum source_search how)
{
	const char *language = json_string_value(json_object_get(src->request, "language"));
	size_t left = TEXT_BYTES_MAX;
	int64_t line = 0;
	const char *name;
	json_t *file;

	words = text_trim(words);
	words.len = MIN(words.len, (size_t)SHOWN_BYTES);
	if (words.len == 0)
		return;
	if (language && search(source_code(src), words, how, &left, &line)) {
		f->file = (struct span){ 0 }; /* the program, under any name */
		f->line = line;
		return;
	}
	json_object_foreach(json_object_get(src->request, "files"), name, file)
	{
		if (json_is_string(file) && search(bytes_of(src, file), words, how, &left, &line)) {
			f->file = span_of(name);
			f->line = line;
			return;
		}
	}
}

/* data NULL: there is none. */
static struct span refine_subject(struct program_source *src, const struct finding *f,
				  enum refine_of of, size_t i)
{
	switch (of) {
	case REFINE_FIRST:
		return f->first;
	case REFINE_WEAK:
		return f->weak ? f->first : (struct span){ 0 };
	case REFINE_LINE:
		return f->line_text;
	case REFINE_MESSAGE:
		return (struct span){ f->message.data, f->message.len };
	case REFINE_TYPE:
		return f->exception;
	case REFINE_CODE:
		return source_code(src);
	case REFINE_FRAMES:
		return i < f->n_frames ? f->frames[i].function : (struct span){ 0 };
	}
	return (struct span){ 0 };
}

/* The line of row->find, with {1} or {n} in it. */
static void refine_place(struct program_source *src, struct finding *f,
			 const struct refine_row *row, const struct slots *s)
{
	const char *hole = strchr(row->find, '{');
	_cleanup_buf_ struct buf words = { .max = TEXT_LINE_MAX + 64 };
	struct span piece = hole ? slot(s, hole[1]) : (struct span){ 0 };

	if (strcmp(row->find, "end") == 0) {
		for (struct span text = source_code(src); text.len > 0; f->line++)
			(void)text_line(&text);
	} else if (buf_printf(&words, "%.*s%.*s", (int)strcspn(row->find, "{"), row->find,
			      (int)piece.len, piece.len > 0 ? piece.data : "") >= 0) {
		source_locate(src, f, (struct span){ words.data, words.len },
			      row->last ? SEARCH_LAST : SEARCH_ONLY);
	}
}

void source_refine(struct program_source *src, struct finding *f, const struct refine_row *rows)
{
	for (const struct refine_row *row = rows; row && row->of && f->found; row++) {
		for (size_t i = 0; i == 0 || (row->of == REFINE_FRAMES && i < f->n_frames); i++) {
			struct span text = refine_subject(src, f, row->of, i);
			bool fits = !row->frame.text;
			struct slots s = { 0 };

			for (size_t k = 0; k < f->n_frames && !fits; k++)
				fits = text_match(&row->frame, f->frames[k].file, &s);
			if (!fits || !text.data || (row->find && f->line > 0))
				continue;
			text.len = MIN(text.len, (size_t)TEXT_BYTES_MAX);
			if (row->has ? !span_has(text, row->has)
				     : !text_match(&row->match, text, &s))
				continue;
			if (row->find)
				refine_place(src, f, row, &s);
			if (row->said) {
				f->category = row->category;
				f->said = row->said;
			}
		}
	}
}

/* Tabs before the column stay tabs, so that the mark is below it for every tab width. */
static int show_caret(struct buf *out, struct span line, int64_t column, int width)
{
	int r = buf_printf(out, "  %*s | ", width, "");

	for (size_t i = 0; r >= 0 && (int64_t)i + 1 < column; i++) {
		char c = i < line.len ? line.data[i] : ' ';

		if ((c & 0xc0) != 0x80) /* the first byte of a character */
			r = buf_puts(out, c == '\t' ? "\t" : " ");
	}
	return r < 0 ? r : buf_puts(out, "^\n");
}

json_t *source_excerpt(struct program_source *src, const char *path, int64_t line, int64_t column)
{
	_cleanup_buf_ struct buf out = { .max = EXCERPT_BYTES };
	struct span text = source_text(src, path);
	char last[24];
	int width, r = 0;

	if (line < 1 || text.len == 0)
		return NULL;
	/* Messages often give the line after the last one for the end of a file. */
	if (!source_line(text, line).data && source_line(text, line - 1).data) {
		line--;
		column = 0;
	}
	if (!source_line(text, line).data)
		return NULL;
	(void)snprintf(last, sizeof(last), "%" PRId64, line + CONTEXT_LINES);
	width = (int)strlen(last);
	for (int64_t n = MAX(line - CONTEXT_LINES, 1); r >= 0 && n <= line + CONTEXT_LINES; n++) {
		struct span shown = source_line(text, n);

		if (!shown.data)
			break;
		r = buf_printf(&out, "%c %*" PRId64 " | ", n == line ? '>' : ' ', width, n);
		if (r >= 0)
			r = buf_append(&out, shown.data, MIN(shown.len, (size_t)SHOWN_BYTES));
		while (r >= 0 && out.data[out.len - 1] == ' ')
			out.data[--out.len] = '\0';
		if (r >= 0)
			r = buf_puts(&out, "\n");
		if (r >= 0 && n == line && column > 0 && column <= SHOWN_BYTES)
			r = show_caret(&out, shown, column, width);
	}
	return r < 0 ? NULL : utf8_to_json(out.data, out.len > 0 ? out.len - 1 : 0, NULL);
}
