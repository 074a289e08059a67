/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See yaml.h. libyaml's events drive an explicit stack of open containers, which bounds the depth. A mapping on
 * the stack either waits for a key, or has one and waits for its value. Numbers are rewritten into JSON's
 * notation and read by jansson, so both formats share one reader.
 */
#include "spec/yaml.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/utf8.h"
#include "spec/read.h"

struct yaml_frame {
	json_t *node; /* array or object, owned by its container */
	char *key;    /* object: the key of the next value, or NULL */
};

struct yaml_builder {
	const struct document *doc;
	struct error *err;
	json_t *root;
	struct yaml_frame stack[YAML_DEPTH_MAX];
	size_t depth;
	size_t line, column;
	unsigned documents;
};

static int yaml_refuse(const struct yaml_builder *b, const char *text)
{
	return error_set(b->err, ERROR_INPUT, EINVAL, "%s:%zu:%zu: %s", b->doc->name, b->line,
			 b->column, text);
}

static int yaml_no_memory(const struct yaml_builder *b)
{
	return error_wrap(b->err, error_oom(b->err), "%s", b->doc->name);
}

/* Takes over node in every case. */
static int yaml_add(struct yaml_builder *b, json_t *node)
{
	struct yaml_frame *top;
	int r;

	if (!node)
		return yaml_no_memory(b);
	if (b->depth == 0) {
		b->root = node;
		return 0;
	}
	top = &b->stack[b->depth - 1];
	if (json_is_array(top->node))
		return json_array_append_new(top->node, node) < 0 ? yaml_no_memory(b) : 0;
	if (!top->key) {
		json_decref(node);
		return yaml_refuse(b, "a key must be plain text");
	}
	r = json_object_set_new(top->node, top->key, node);
	free(TAKE_PTR(top->key));
	return r < 0 ? yaml_no_memory(b) : 0;
}

static int yaml_open(struct yaml_builder *b, json_t *node)
{
	int r;

	if (b->depth == YAML_DEPTH_MAX) {
		json_decref(node);
		return yaml_refuse(b, "it is nested too deep");
	}
	r = yaml_add(b, node);
	if (r < 0)
		return r;
	b->stack[b->depth++] = (struct yaml_frame){ .node = node };
	return 0;
}

static bool yaml_is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

/*
 * The core schema's decimal numbers in JSON's notation: no plus, no leading zeros, digits on both
 * sides of the point. False: this is no number. out must hold len + 3 bytes.
 */
static bool yaml_to_number(const char *s, char *out)
{
	size_t whole, fraction = 0, n = 0;
	bool point;

	if (*s == '-')
		out[n++] = '-';
	s += *s == '-' || *s == '+';
	whole = strspn(s, "0123456789");
	point = s[whole] == '.';
	if (point)
		fraction = strspn(s + whole + 1, "0123456789");
	if (whole + fraction == 0)
		return false;
	while (whole > 1 && *s == '0') {
		s++;
		whole--;
	}
	if (whole == 0)
		out[n++] = '0';
	memcpy(out + n, s, whole);
	n += whole;
	s += whole + point;
	if (point) {
		out[n++] = '.';
		if (fraction == 0)
			out[n++] = '0';
		memcpy(out + n, s, fraction);
		n += fraction;
		s += fraction;
	}
	if (*s == 'e' || *s == 'E') {
		size_t sign = s[1] == '-' || s[1] == '+';
		size_t digits = strspn(s + 1 + sign, "0123456789");

		if (digits == 0)
			return false;
		memcpy(out + n, s, 1 + sign + digits);
		n += 1 + sign + digits;
		s += 1 + sign + digits;
	}
	out[n] = '\0';
	return *s == '\0';
}

/* 0x1f and 0o17. Octal matters: file modes are written that way. */
static bool yaml_parse_prefixed(const char *s, json_int_t *ret)
{
	json_int_t base = s[0] == '0' ? (s[1] == 'x' ? 16 : s[1] == 'o' ? 8 : 0) : 0, value = 0;

	if (base == 0 || !s[2])
		return false;
	for (s += 2; *s; s++) {
		const char *digits = "0123456789abcdef", *at;
		char c = *s >= 'A' && *s <= 'F' ? (char)(*s - 'A' + 'a') : *s;

		at = memchr(digits, c, (size_t)base);
		if (!at || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (json_int_t)(at - digits), &value))
			return false;
	}
	*ret = value;
	return true;
}

static int yaml_add_plain(struct yaml_builder *b, const char *text, size_t len)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	static const char *const endless[] = { ".inf",	".Inf",	 ".INF",  "+.inf", "+.Inf",
					       "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
					       ".NaN",	".NAN",	 NULL };
	_cleanup_free_ char *number = NULL;
	json_int_t integer;

	if (yaml_is_one_of(text, nulls))
		return yaml_add(b, json_null());
	if (yaml_is_one_of(text, trues))
		return yaml_add(b, json_true());
	if (yaml_is_one_of(text, falses))
		return yaml_add(b, json_false());
	if (yaml_is_one_of(text, endless))
		return yaml_refuse(b, "infinity and not-a-number are not accepted");
	if (yaml_parse_prefixed(text, &integer))
		return yaml_add(b, json_integer(integer));
	number = malloc(len + 3);
	if (!number)
		return yaml_no_memory(b);
	if (yaml_to_number(text, number)) {
		json_t *node = json_loads(number, JSON_DECODE_ANY, NULL);

		return node ? yaml_add(b, node) : yaml_refuse(b, "the number is too large");
	}
	return yaml_add(b, json_stringn(text, len));
}

static int yaml_add_key(struct yaml_builder *b, const char *text)
{
	struct yaml_frame *top = &b->stack[b->depth - 1];

	if (!*text)
		return yaml_refuse(b, "a key is empty");
	if (json_object_get(top->node, text))
		return error_set(b->err, ERROR_INPUT, EINVAL,
				 "%s:%zu:%zu: the key '%s' is there twice", b->doc->name, b->line,
				 b->column, quote_text(text).text);
	top->key = strdup(text);
	return top->key ? 0 : yaml_no_memory(b);
}

static int yaml_add_scalar(struct yaml_builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;

	if (event->data.scalar.anchor || event->data.scalar.tag)
		return yaml_refuse(b, "anchors and tags are not accepted");
	if (memchr(text, '\0', len))
		return yaml_refuse(b, "a text holds a NUL byte");
	if (b->depth > 0 && json_is_object(b->stack[b->depth - 1].node) &&
	    !b->stack[b->depth - 1].key)
		return yaml_add_key(b, text);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return yaml_add_plain(b, text, len);
	return yaml_add(b, json_stringn(text, len));
}

static int yaml_take(struct yaml_builder *b, const yaml_event_t *event)
{
	b->line = event->start_mark.line + 1;
	b->column = event->start_mark.column + 1;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++ > 0)
			return yaml_refuse(b, "a second document starts; only one is accepted");
		return 0;
	case YAML_SCALAR_EVENT:
		return yaml_add_scalar(b, event);
	case YAML_ALIAS_EVENT:
		return yaml_refuse(b, "aliases are not accepted; write the value out");
	case YAML_SEQUENCE_START_EVENT:
		if (event->data.sequence_start.anchor || event->data.sequence_start.tag)
			return yaml_refuse(b, "anchors and tags are not accepted");
		return yaml_open(b, json_array());
	case YAML_MAPPING_START_EVENT:
		if (event->data.mapping_start.anchor || event->data.mapping_start.tag)
			return yaml_refuse(b, "anchors and tags are not accepted");
		return yaml_open(b, json_object());
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		assert(b->depth > 0 && !b->stack[b->depth - 1].key);
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

/* Whether the line begins with blanks among which is a tab: YAML forbids it, and the parser's own words do not say so. */
static bool yaml_is_indented_by_tab(const struct document *doc, size_t line)
{
	const char *text = doc->text, *end = doc->text + doc->len;

	for (; line > 1 && text < end; text++)
		line -= *text == '\n';
	while (text < end && *text == ' ')
		text++;
	return text < end && *text == '\t';
}

static int yaml_build(struct yaml_builder *b, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		bool end;
		int r;

		if (!yaml_parser_parse(parser, &event)) {
			b->line = parser->problem_mark.line + 1;
			b->column = parser->problem_mark.column + 1;
			if (yaml_is_indented_by_tab(b->doc, b->line))
				return yaml_refuse(
					b, "the line is indented by a tab; YAML takes spaces only");
			return yaml_refuse(b, parser->problem ? parser->problem : "it is not YAML");
		}
		r = yaml_take(b, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (r < 0)
			return r;
		if (end)
			return b->root ? 0 : yaml_refuse(b, "it is empty");
	}
}

int yaml_parse(const struct document *doc, json_t **ret, struct error *err)
{
	struct yaml_builder b = { .doc = doc, .err = err, .line = 1, .column = 1 };
	yaml_parser_t parser;
	int r;

	if (doc->len > YAML_BYTES_MAX)
		return error_set(err, ERROR_INPUT, EFBIG, "%s: it has more than %d bytes",
				 doc->name, YAML_BYTES_MAX);
	if (!yaml_parser_initialize(&parser))
		return yaml_no_memory(&b);
	/* Set explicitly: otherwise a byte order mark could switch to UTF-16. */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)doc->text, doc->len);
	r = yaml_build(&b, &parser);
	yaml_parser_delete(&parser);
	for (size_t i = 0; i < b.depth; i++)
		free(b.stack[i].key);
	if (r < 0) {
		json_decref(b.root);
		return r;
	}
	*ret = b.root;
	return 0;
}

/* --- where a key stands: the tree has no positions, so after a refusal the text is read again --- */

/* An open mapping or list. */
struct place_frame {
	size_t path_len; /* of its own path */
	size_t index;	 /* list: of the next element */
	bool is_list, has_key;
};

struct place_walk {
	const char *field;
	char path[sizeof(((struct error *)NULL)->field)];
	struct place_frame stack[YAML_DEPTH_MAX];
	size_t depth;
};

/* True: the event is the key that is looked for. */
static bool place_finds(struct place_walk *w, const yaml_event_t *event)
{
	struct place_frame *top = w->depth > 0 ? &w->stack[w->depth - 1] : NULL;
	bool opens = event->type == YAML_MAPPING_START_EVENT ||
		     event->type == YAML_SEQUENCE_START_EVENT;
	bool is_value = opens || event->type == YAML_SCALAR_EVENT;

	if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT) {
		w->depth--;
		return false;
	}
	if (top && is_value && (top->is_list || !top->has_key)) {
		char *at = w->path + top->path_len;
		size_t room = sizeof(w->path) - top->path_len;

		/* The path of the next key or element. Like `field`, it is cut where its array ends. */
		if (top->is_list)
			(void)snprintf(at, room, "[%zu]", top->index);
		else
			(void)snprintf(at, room, "%s%s", top->path_len ? "." : "",
				       opens ? "" : (const char *)event->data.scalar.value);
		top->index++;
		top->has_key = true;
		if (strcmp(w->path, w->field) == 0)
			return true;
		if (!top->is_list)
			return false;
	}
	if (top && is_value)
		top->has_key = false;
	if (opens)
		w->stack[w->depth++] = (struct place_frame){
			.path_len = strlen(w->path),
			.is_list = event->type == YAML_SEQUENCE_START_EVENT,
		};
	return false;
}

int yaml_place(const struct document *doc, int r, struct error *err)
{
	struct place_walk w = { .field = err ? err->field : "" };
	yaml_parser_t parser;
	yaml_event_t event;
	bool found = false, end = !*w.field;

	if (!yaml_parser_initialize(&parser))
		return r;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)doc->text, doc->len);
	while (!end && !found && w.depth < YAML_DEPTH_MAX && yaml_parser_parse(&parser, &event)) {
		found = place_finds(&w, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		if (found)
			(void)error_wrap(err, r, "%.200s:%zu:%zu", doc->name,
					 event.start_mark.line + 1, event.start_mark.column + 1);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return found ? r : error_wrap(err, r, "%.200s", doc->name);
}

/* --- JSON --- */

/* jansson recurses per level; counting brackets first keeps its stack small. */
static bool json_is_too_deep(const char *text, size_t len)
{
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			if (text[i] == '\\')
				i++;
			else if (text[i] == '"')
				in_string = false;
		} else if (text[i] == '"') {
			in_string = true;
		} else if (text[i] == '[' || text[i] == '{') {
			if (++depth > JSON_DEPTH_MAX)
				return true;
		} else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
			depth--;
		}
	}
	return false;
}

/* The index of the constant at the start of rest; JSON_CONSTANTS: none. */
static size_t json_constant_at(struct span rest, size_t *len)
{
	static const char *const words[JSON_CONSTANTS] = { "NaN", "Infinity", "-Infinity" };

	for (size_t i = 0; i < JSON_CONSTANTS; i++) {
		*len = strlen(words[i]);
		if (rest.len >= *len && memcmp(rest.data, words[i], *len) == 0)
			return i;
	}
	return JSON_CONSTANTS;
}

int json_replace_constants(struct span text, const char *const by[JSON_CONSTANTS], struct buf *out)
{
	bool quoted = false;
	int r = 0;

	/* No replacement is longer than eight times its word. */
	buf_init(out, text.len * 8 + 1);
	for (size_t i = 0; r == 0 && i < text.len;) {
		struct span rest = { text.data + i, text.len - i };
		size_t n, which = quoted ? JSON_CONSTANTS : json_constant_at(rest, &n);

		if (which < JSON_CONSTANTS) {
			r = buf_puts(out, by[which]);
			i += n;
			continue;
		}
		n = quoted && rest.data[0] == '\\' && rest.len > 1 ? 2 : 1;
		if (n == 1 && rest.data[0] == '"')
			quoted = !quoted;
		r = buf_append(out, rest.data, n);
		i += n;
	}
	return r;
}

/*
 * A constant in the tree is a string of a NUL and its name. In limits it becomes the name, which no limit
 * accepts; elsewhere it is refused here.
 */
static int json_resolve_constants(const struct reader *r, json_t *tree, bool in_limits)
{
	const char *key;
	json_t *value;
	void *next;
	size_t i;
	int e = 0;

	json_object_foreach_safe(tree, next, key, value)
	{
		struct reader at = reader_at(r, key);
		const char *text = json_string_value(value);

		if (text && json_string_length(value) > 1 && text[0] == '\0' && in_limits)
			e = json_object_set_new(tree, key, json_string(text + 1));
		else
			e = json_resolve_constants(&at, value, strcmp(key, "limits") == 0);
		if (e < 0)
			return e;
	}
	json_array_foreach(tree, i, value)
	{
		struct reader at = reader_index(r, i);

		e = json_resolve_constants(&at, value, false);
		if (e < 0)
			return e;
	}
	if (json_is_string(tree) && json_string_length(tree) > 1 &&
	    *json_string_value(tree) == '\0')
		return reader_refuse(r, "%s is not a number that JSON has",
				     json_string_value(tree) + 1);
	return 0;
}

/*
 * Python's json module sends these words for floats that are no numbers: each is refused as a bad value of its
 * key.
 */
static int json_parse_constants(const struct document *doc, json_t **ret, struct error *err)
{
	static const char *const marks[JSON_CONSTANTS] = { "\"\\u0000NaN\"", "\"\\u0000Infinity\"",
							   "\"\\u0000-Infinity\"" };
	struct reader r = { .err = err };
	_cleanup_buf_ struct buf text = { 0 };
	json_t *root;
	int e;

	if (json_replace_constants((struct span){ doc->text, doc->len }, marks, &text) < 0)
		return error_oom(err);
	root = json_loadb(text.data ? text.data : "", text.len,
			  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!root)
		return 0;
	e = json_resolve_constants(&r, root, false);
	if (e < 0) {
		json_decref(root);
		return e;
	}
	*ret = root;
	return 1;
}

/* Counts the characters that begin a value, outside of strings. */
bool json_has_few_values(struct span text)
{
	size_t values = 0;
	bool inside = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (inside && c == '\\')
			i++;
		else if (c == '"')
			inside = !inside;
		else if (!inside && (c == ',' || c == '[' || c == '{') &&
			 ++values > JSON_VALUES_MAX)
			return false;
	}
	return true;
}

int json_parse(const struct document *given, json_t **ret, struct error *err)
{
	/* Editors of Windows put a byte order mark before UTF-8. */
	size_t mark = utf8_mark(given->text, given->len);
	const struct document plain = { given->name, given->text + mark, given->len - mark },
			      *doc = &plain;
	json_error_t problem;
	json_t *root;

	if (doc->len > JSON_BYTES_MAX)
		return error_set(err, ERROR_INPUT, EFBIG, "%s: it has more than %d bytes",
				 doc->name, JSON_BYTES_MAX);
	if (json_is_too_deep(doc->text, doc->len))
		return error_set(err, ERROR_INPUT, EINVAL, "%s: it is nested deeper than %d levels",
				 doc->name, JSON_DEPTH_MAX);
	root = json_loadb(doc->text, doc->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
	if (!root && json_error_code(&problem) == json_error_numeric_overflow)
		return error_set(err, ERROR_INPUT, ERANGE, "%s:%d:%d: no number is that large: %s",
				 doc->name, problem.line, problem.column,
				 quote_text(problem.text).text);
	if (!root && json_error_code(&problem) == json_error_invalid_syntax) {
		int e = json_parse_constants(doc, &root, err);

		if (e < 0)
			return e;
	}
	if (!root)
		return error_set(err, ERROR_INPUT, EINVAL, "%s:%d:%d: it is not JSON: %s",
				 doc->name, problem.line, problem.column,
				 quote_text(problem.text).text);
	*ret = root;
	return 0;
}
