/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error nobody caught, from what a program printed last. Python's form:
 *
 *   Traceback (most recent call last):
 *     File "/sandbox/code.py", line 3, in <module>
 *       1/0
 *   ZeroDivisionError: division by zero
 *
 * The last block counts (earlier ones led to it), the last line of type and message in it, and the last
 * frame in the caller's own files. Text of a program is data: nothing here trusts it to be well formed.
 */
#include "client/run.h"

#include "spec/utf8.h"

#include <ctype.h>
#include <string.h>

struct find {
	struct span type, message, file;
	json_int_t line;
	bool framed; /* a frame came since the last type line */
};

static struct span take_line(struct span *text)
{
	const char *end = memchr(text->data, '\n', text->len);
	struct span line = { text->data, end ? (size_t)(end - text->data) : text->len };

	text->data += line.len + (end != NULL);
	text->len -= line.len + (end != NULL);
	return line;
}

static bool starts_with(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && memcmp(s.data, prefix, n) == 0;
}

/* `  File "/sandbox/code.py", line 3, in f`; frames of the library do not replace one of ours. */
static bool take_frame(struct find *f, struct span line)
{
	static const char head[] = "  File \"", middle[] = "\", line ";
	const char *name, *end, *digits;
	json_int_t number = 0;

	if (!starts_with(line, head))
		return false;
	name = line.data + sizeof(head) - 1;
	end = memmem(name, line.len - (sizeof(head) - 1), middle, sizeof(middle) - 1);
	if (!end)
		return false;
	digits = end + sizeof(middle) - 1;
	while (digits < line.data + line.len && isdigit((unsigned char)*digits) &&
	       number < 100000000)
		number = number * 10 + (*digits++ - '0');
	f->framed = true;
	if (starts_with((struct span){ name, (size_t)(end - name) }, SANDBOX_WORK "/")) {
		f->file = (struct span){ name, (size_t)(end - name) };
		f->line = number;
	}
	return true;
}

/* `ZeroDivisionError: division by zero`, `KeyboardInterrupt`, `pkg.mod.Error: text` */
static void take_type(struct find *f, struct span line)
{
	size_t n = 0;

	while (n < line.len &&
	       (isalnum((unsigned char)line.data[n]) || line.data[n] == '_' || line.data[n] == '.'))
		n++;
	if (n == 0 || isdigit((unsigned char)line.data[0]) || (n < line.len && line.data[n] != ':'))
		return;
	f->type = (struct span){ line.data, n };
	line.data += MIN(n + 2, line.len);
	line.len -= MIN(n + 2, line.len);
	f->message = line;
	f->framed = false;
}

json_t *uncaught_find(const char *language, const char *text, size_t len)
{
	struct span rest = { text, len };
	struct find f = { 0 };
	bool any = false;

	if (strcmp(language, "python") != 0)
		return NULL;
	while (rest.len > 0) {
		struct span line = take_line(&rest);

		if (starts_with(line, "Traceback (most recent call last):")) {
			f = (struct find){ 0 };
			continue;
		}
		if (!take_frame(&f, line) && f.framed && line.len > 0 && line.data[0] != ' ') {
			take_type(&f, line);
			any = any || f.type.len > 0;
		}
	}
	if (!any || f.type.len == 0)
		return NULL;
	return json_pack("{s:o, s:o, s:o, s:o}", "type",
			 utf8_to_json(f.type.data, f.type.len, NULL), "message",
			 utf8_to_json(f.message.data, f.message.len, NULL), "file",
			 f.file.data ? utf8_to_json(f.file.data, f.file.len, NULL) : json_null(),
			 "line", f.line > 0 ? json_integer(f.line) : json_null());
}
