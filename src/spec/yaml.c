/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See yaml.h. libyaml's events drive an explicit stack of open containers, which bounds the depth. A mapping on
 * the stack either waits for a key, or has one and waits for its value. Numbers are rewritten into JSON's
 * notation and read by jansson, so both formats share one reader.
 */
#include "spec/yaml.h"

#include "base/utf8.h"
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "spec/constants.h"
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

static int refuse_yaml(const struct yaml_builder *b, const char *text)
{
	return error_set(b->err, ERROR_INPUT, EINVAL, "%s:%zu:%zu: %s", b->doc->name, b->line,
			 b->column, text);
}

static int refuse_for_memory(const struct yaml_builder *b)
{
	return error_wrap(b->err, error_oom(b->err), "%s", b->doc->name);
}

/* Takes over node in every case. */
static int add_node(struct yaml_builder *b, json_t *node)
{
	struct yaml_frame *top;
	int r;

	if (!node)
		return refuse_for_memory(b);
	if (b->depth == 0) {
		b->root = node;
		return 0;
	}
	top = &b->stack[b->depth - 1];
	if (json_is_array(top->node))
		return json_array_append_new(top->node, node) < 0 ? refuse_for_memory(b) : 0;
	if (!top->key) {
		json_decref(node);
		return refuse_yaml(b, "a key must be plain text");
	}
	r = json_object_set_new(top->node, top->key, node);
	free(TAKE_PTR(top->key));
	return r < 0 ? refuse_for_memory(b) : 0;
}

static int open_node(struct yaml_builder *b, json_t *node)
{
	int r;

	if (b->depth == YAML_DEPTH_MAX) {
		json_decref(node);
		return refuse_yaml(b, "it is nested too deep");
	}
	r = add_node(b, node);
	if (r < 0)
		return r;
	b->stack[b->depth++] = (struct yaml_frame){ .node = node };
	return 0;
}

static bool is_one_of(const char *text, const char *const *words)
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
static bool to_json_number(const char *s, char *out)
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
static bool parse_prefixed(const char *s, json_int_t *ret)
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

static int add_plain(struct yaml_builder *b, const char *text, size_t len)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	static const char *const endless[] = { ".inf",	".Inf",	 ".INF",  "+.inf", "+.Inf",
					       "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
					       ".NaN",	".NAN",	 NULL };
	_cleanup_free_ char *number = NULL;
	json_int_t integer;

	if (is_one_of(text, nulls))
		return add_node(b, json_null());
	if (is_one_of(text, trues))
		return add_node(b, json_true());
	if (is_one_of(text, falses))
		return add_node(b, json_false());
	if (is_one_of(text, endless))
		return refuse_yaml(b, "infinity and not-a-number are not accepted");
	if (parse_prefixed(text, &integer))
		return add_node(b, json_integer(integer));
	number = malloc(len + 3);
	if (!number)
		return refuse_for_memory(b);
	if (to_json_number(text, number)) {
		json_t *node = json_loads(number, JSON_DECODE_ANY, NULL);

		return node ? add_node(b, node) : refuse_yaml(b, "the number is too large");
	}
	return add_node(b, json_stringn(text, len));
}

static int add_key(struct yaml_builder *b, const char *text)
{
	struct yaml_frame *top = &b->stack[b->depth - 1];

	if (!*text)
		return refuse_yaml(b, "a key is empty");
	if (json_object_get(top->node, text))
		return error_set(b->err, ERROR_INPUT, EINVAL,
				 "%s:%zu:%zu: the key '%s' is there twice", b->doc->name, b->line,
				 b->column, quote_text(text).text);
	top->key = strdup(text);
	return top->key ? 0 : refuse_for_memory(b);
}

static int add_scalar(struct yaml_builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;

	if (event->data.scalar.anchor || event->data.scalar.tag)
		return refuse_yaml(b, "anchors and tags are not accepted");
	if (memchr(text, '\0', len))
		return refuse_yaml(b, "a text holds a NUL byte");
	if (b->depth > 0 && json_is_object(b->stack[b->depth - 1].node) &&
	    !b->stack[b->depth - 1].key)
		return add_key(b, text);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return add_plain(b, text, len);
	return add_node(b, json_stringn(text, len));
}

static int take_event(struct yaml_builder *b, const yaml_event_t *event)
{
	b->line = event->start_mark.line + 1;
	b->column = event->start_mark.column + 1;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++ > 0)
			return refuse_yaml(b, "a second document starts; only one is accepted");
		return 0;
	case YAML_SCALAR_EVENT:
		return add_scalar(b, event);
	case YAML_ALIAS_EVENT:
		return refuse_yaml(b, "aliases are not accepted; write the value out");
	case YAML_SEQUENCE_START_EVENT:
		if (event->data.sequence_start.anchor || event->data.sequence_start.tag)
			return refuse_yaml(b, "anchors and tags are not accepted");
		return open_node(b, json_array());
	case YAML_MAPPING_START_EVENT:
		if (event->data.mapping_start.anchor || event->data.mapping_start.tag)
			return refuse_yaml(b, "anchors and tags are not accepted");
		return open_node(b, json_object());
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

/* Whether the line begins with blanks among which is a tab: YAML forbids it, and the parser's own words do not say so. */
static bool is_indented_by_tab(const struct document *doc, size_t line)
{
	const char *text = doc->text, *end = doc->text + doc->len;

	for (; line > 1 && text < end; text++)
		line -= *text == '\n';
	while (text < end && *text == ' ')
		text++;
	return text < end && *text == '\t';
}

static const char *explain_yaml(const struct yaml_builder *b, const yaml_parser_t *parser)
{
	if (is_indented_by_tab(b->doc, b->line))
		return "the line is indented by a tab; YAML takes spaces only";
	return parser->problem ? parser->problem : "it is not YAML";
}

static int build_yaml_tree(struct yaml_builder *b, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		bool end;
		int r;

		if (!yaml_parser_parse(parser, &event)) {
			b->line = parser->problem_mark.line + 1;
			b->column = parser->problem_mark.column + 1;
			return refuse_yaml(b, explain_yaml(b, parser));
		}
		r = take_event(b, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (r < 0)
			return r;
		if (end)
			return b->root ? 0 : refuse_yaml(b, "it is empty");
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
		return refuse_for_memory(&b);
	/* Set explicitly: otherwise a byte order mark could switch to UTF-16. */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)doc->text, doc->len);
	r = build_yaml_tree(&b, &parser);
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

/* jansson recurses per level; counting brackets first keeps its stack small. */
static bool json_too_deep(const char *text, size_t len)
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

/*
 * A constant in the tree is a string of a NUL and its name. In limits it becomes the name, which no limit
 * accepts; elsewhere it is refused here.
 */
static int resolve_constants(const struct reader *r, json_t *tree, bool in_limits)
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
			e = resolve_constants(&at, value, strcmp(key, "limits") == 0);
		if (e < 0)
			return e;
	}
	json_array_foreach(tree, i, value)
	{
		struct reader at = reader_index(r, i);

		e = resolve_constants(&at, value, false);
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
static int parse_constants(const struct document *doc, json_t **ret, struct error *err)
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
	e = resolve_constants(&r, root, false);
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
	if (json_too_deep(doc->text, doc->len))
		return error_set(err, ERROR_INPUT, EINVAL, "%s: it is nested deeper than %d levels",
				 doc->name, JSON_DEPTH_MAX);
	root = json_loadb(doc->text, doc->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
	if (!root && json_error_code(&problem) == json_error_numeric_overflow)
		return error_set(err, ERROR_INPUT, ERANGE, "%s:%d:%d: no number is that large: %s",
				 doc->name, problem.line, problem.column,
				 quote_text(problem.text).text);
	if (!root && json_error_code(&problem) == json_error_invalid_syntax) {
		int e = parse_constants(doc, &root, err);

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
