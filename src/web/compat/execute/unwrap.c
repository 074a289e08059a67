/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See unwrap.h. Each kind of wrapping is a step that removes it or leaves the text alone. The steps are tried
 * until none applies. Every step makes the text shorter, and the number of steps is bounded.
 */
#include "web/compat/execute/unwrap.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "web/compat/execute/fence.h"
#include "web/compat/execute/literal.h"

enum { LAYERS_MAX = 8 };

static const char KEY[] = "generated_code";

static void replace_program(struct unwrapped *u, char *owned, size_t len)
{
	free(u->owned);
	u->owned = owned;
	u->code = (struct span){ owned ? owned : "", owned ? len : 0 };
}

/* JSON first: if a text is both, JSON's escapes (\/, pairs of surrogates) were meant. */
static int pick_json(struct span text, struct buf *ret)
{
	json_error_t problem;
	json_t *root = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &problem);
	const json_t *value = json_object_get(root, KEY);
	int r = 0;

	if (json_is_string(value)) {
		r = buf_append(ret, json_string_value(value), json_string_length(value));
		r = r < 0 ? r : 1;
	}
	json_decref(root);
	return r;
}

static int unwrap_dictionary(struct unwrapped *u, bool python _unused_)
{
	struct span text = fence_trim(u->code);
	_cleanup_buf_ struct buf value = { 0 };
	size_t len;
	int r;

	if (text.len < 2 || text.data[0] != '{' || text.data[text.len - 1] != '}')
		return 0;
	buf_init(&value, text.len);
	r = pick_json(text, &value);
	if (r == 0)
		r = literal_pick(text, KEY, &value);
	if (r <= 0)
		return r;
	len = value.len;
	replace_program(u, buf_take(&value), len);
	return 1;
}

/* Each line of an indented block loses the indentation of the opening line. */
static int dedent(struct unwrapped *u, struct span code, size_t indent)
{
	_cleanup_buf_ struct buf out = { 0 };
	struct span rest = code, line;
	size_t len;

	buf_init(&out, code.len);
	while (fence_next_line(&rest, &line)) {
		size_t n = 0;

		while (n < indent && n < line.len && (line.data[n] == ' ' || line.data[n] == '\t'))
			n++;
		if (buf_append(&out, line.data + n, (size_t)(rest.data - line.data) - n) < 0)
			return -ENOMEM;
	}
	len = out.len;
	replace_program(u, buf_take(&out), len);
	return 1;
}

static int unwrap_fence(struct unwrapped *u, bool python)
{
	struct span text = fence_trim(u->code);
	struct fence f;

	/*
	 * The first line keeps its indentation, which the other lines are measured by; the last line keeps its
	 * end.
	 */
	while (text.data > u->code.data && (text.data[-1] == ' ' || text.data[-1] == '\t'))
		text.data--;
	text.len = (size_t)(u->code.data + u->code.len - text.data);
	if (!(python ? fence_find_python(text, &f) : fence_find_first(text, &f)))
		return 0;
	/* Only a closing fence is there if the opening line was part of the prompt. */
	if (!f.closed && fence_trim(f.code).len == 0 && fence_trim(f.before).len > 0) {
		u->code = f.before;
		return 1;
	}
	if (f.indent > 0 && f.code.len > 0)
		return dedent(u, f.code, f.indent);
	u->code = f.code;
	return 1;
}

static int unwrap_first_line(struct unwrapped *u, bool python)
{
	struct span rest = fence_trim(u->code), line;

	if (!python)
		return 0;
	/* Only with a line end after it: a lone word is a program. */
	rest.len = (size_t)(u->code.data + u->code.len - rest.data);
	if (!memchr(rest.data, '\n', rest.len) || !fence_next_line(&rest, &line) ||
	    !fence_names_python(fence_trim(line)))
		return 0;
	u->code = rest;
	return 1;
}

static size_t leading_ticks(struct span text)
{
	size_t n = 0;

	while (n < text.len && text.data[n] == '`')
		n++;
	return n;
}

static size_t trailing_ticks(struct span text)
{
	size_t n = 0;

	while (n < text.len && text.data[text.len - 1 - n] == '`')
		n++;
	return n;
}

/* Skips the language name in "```python print(1)```". */
static struct span skip_name(struct span text)
{
	size_t word = 0;

	while (word < text.len && text.data[word] != ' ' && text.data[word] != '\t')
		word++;
	if (word < text.len && fence_names_python((struct span){ text.data, word }))
		return (struct span){ text.data + word, text.len - word };
	return text;
}

static int unwrap_ticks(struct unwrapped *u, bool python)
{
	struct span text = fence_trim(u->code);
	size_t head = leading_ticks(text), tail = trailing_ticks(text);

	/* In other languages a program may begin and end with a backtick. */
	if (head == 0 || (!python && (head < 3 || tail < 3)))
		return 0;
	if (head == text.len) {
		u->code.len = 0;
		return 1;
	}
	text.data += head;
	text.len -= head + tail;
	u->code = fence_trim(head >= 3 ? skip_name(text) : text);
	return 1;
}

int unwrap(struct span text, bool python, struct unwrapped *ret)
{
	static int (*const steps[])(struct unwrapped *, bool) = {
		unwrap_dictionary,
		unwrap_fence,
		unwrap_first_line,
		unwrap_ticks,
	};
	struct unwrapped u = { .code = text };

	for (size_t layer = 0, i = 0; layer < LAYERS_MAX && i < ARRAY_SIZE(steps); i++) {
		int r = steps[i](&u, python);

		if (r < 0) {
			unwrapped_done(&u);
			return r;
		}
		if (r > 0) {
			layer++;
			i = (size_t)-1;
		}
	}
	*ret = u;
	return 0;
}
