/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See advice.h. The family's rows are tried in order, then the common ones, for the error itself; if none fits,
 * for its cause. A row may ask for the word of the program that is nearest to the unknown one, by edit
 * distance. A message is untrusted: its pieces are cut, and line ends removed, before they are part of a
 * sentence.
 */
#include "run/analyse/advice.h"

#include "run/analyse/demand.h"

#include "base/suggest.h"
#include "spec/knob.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_MAX = 80, SENTENCE_MAX = 800, WORD_MAX = 40, SCAN_MAX = 64 << 10 };

struct sentence {
	const struct advice_input *in;
	struct slots slots;
	char near[WORD_MAX + 1];
	int64_t line; /* 0: not known */
	struct buf *out;
};

static bool fits_type(const char *want, struct span type)
{
	size_t n = want ? strlen(want) : 0;

	if (!want)
		return true;
	if (want[n - 1] == '*')
		return type.len >= n - 1 && (n == 1 || memcmp(type.data, want, n - 1) == 0);
	return span_is(type, want);
}

static const struct advice *find_row(const struct advice *rows, struct span type,
				     struct span message, struct slots *ret)
{
	for (const struct advice *row = rows; row && row->category; row++)
		if (fits_type(row->exception, type) && text_match(&row->match, message, ret))
			return row;
	return NULL;
}

static bool is_advice_word_char(unsigned char c)
{
	return isalnum(c) || c == '_';
}

struct word_search {
	char word[WORD_MAX + 1];
	struct suggestion best;
	char *near;  /* a copy of the best candidate */
	size_t left; /* bytes that may still be searched */
};

/* Offers every word of a text. */
static void offer_words(struct word_search *search, struct span text)
{
	size_t len = strlen(search->word), slack = MAX(len / 3, (size_t)1);

	text.len = MIN(text.len, search->left);
	search->left -= text.len;
	for (size_t i = 0; i < text.len;) {
		char candidate[WORD_MAX + 1];
		size_t n = 0;

		while (i + n < text.len && is_advice_word_char((unsigned char)text.data[i + n]))
			n++;
		if (n > 1 && n <= WORD_MAX && n + slack >= len && n <= len + slack &&
		    !isdigit((unsigned char)text.data[i])) {
			memcpy(candidate, text.data + i, n);
			candidate[n] = '\0';
			if (strcmp(candidate, search->word) != 0)
				suggest_offer(&search->best, search->word, candidate);
			if (search->best.best == candidate) {
				memcpy(search->near, candidate, n + 1);
				search->best.best = search->near;
			}
		}
		i += n + 1;
	}
}

/* The last part of a.b.c, without characters that are no letters. */
static void last_word(struct span s, char ret[WORD_MAX + 1])
{
	size_t n = 0;

	while (n < s.len && n < WORD_MAX &&
	       is_advice_word_char((unsigned char)s.data[s.len - 1 - n]))
		n++;
	if (n > 0)
		memcpy(ret, s.data + s.len - n, n);
	ret[n] = '\0';
}

static void find_near(struct sentence *s)
{
	const json_t *files = json_object_get(s->in->source->request, "files");
	struct word_search search = { .near = s->near, .left = SCAN_MAX };
	const char *name;
	json_t *file;

	last_word(slot(&s->slots, '1'), search.word);
	if (strlen(search.word) < 3) /* two letters are near to too many words */
		return;
	offer_words(&search, source_code(s->in->source));
	json_object_foreach((json_t *)(uintptr_t)files, name, file)
	{
		if (search.left == 0)
			break;
		offer_words(&search, span_of(name));
		if (json_is_string(file))
			offer_words(&search, (struct span){ json_string_value(file),
							    json_string_length(file) });
	}
	/* Of two equally near words, the program's own was offered first. */
	if (s->in->family && s->in->family->words) {
		search.left = strlen(s->in->family->words);
		offer_words(&search, span_of(s->in->family->words));
	}
}

static int put_piece(struct buf *out, struct span piece)
{
	int r = 0;
	size_t n = MIN(piece.len, (size_t)PIECE_MAX);

	/* Not inside a character. */
	while (n > 0 && n < piece.len && (piece.data[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = buf_append(out, (unsigned char)piece.data[i] < ' ' ? " " : &piece.data[i], 1);
	return r < 0 || n == piece.len ? r : buf_puts(out, "…");
}

/* {1} in a rule of naming, as Debian spells it: lower case, "-" for "_", "/" and "::". */
static int put_ruled(struct buf *out, const char *rule, struct span module)
{
	const char *hole = strstr(rule, "{1}");
	int r = buf_append(out, rule, (size_t)(hole - rule));

	for (size_t i = 0; i < MIN(module.len, (size_t)PIECE_MAX) && r >= 0; i++) {
		char c = (char)tolower((unsigned char)module.data[i]);

		if (c == ':' && i + 1 < module.len && module.data[i + 1] == ':')
			i++;
		if (c == '_' || c == '/' || c == ':')
			c = '-';
		r = buf_append(out, &c, 1);
	}
	return r < 0 ? r : buf_puts(out, hole + 3);
}

static const struct package_hint *find_package(const struct family *family, struct span module)
{
	for (const struct package_hint *p = family->packages; p && p->module; p++) {
		size_t n = strlen(p->module);

		if (module.len >= n && memcmp(module.data, p->module, n) == 0 &&
		    (module.len == n || strchr("./:", module.data[n])))
			return p;
	}
	return NULL;
}

/* "install `python3-opencv` (Debian) or `opencv-python` (pip) on the host" */
static int put_package(struct sentence *s)
{
	const struct family *family = s->in->family;
	struct span module = slot(&s->slots, '1');
	const struct package_hint *p = family ? find_package(family, module) : NULL;
	bool debian = p ? p->debian != NULL : family && family->debian;
	bool registry = family && family->registry && (!p || p->registry);
	const char *dot = module.len > 0 ? memchr(module.data, '.', module.len) : NULL;
	int r;

	if (!debian && !registry)
		return buf_puts(s->out, "check its name, or install on the host what provides it");
	r = buf_puts(s->out, "install ");
	if (r >= 0 && debian) {
		r = buf_puts(s->out, "`");
		if (r >= 0)
			r = p ? buf_puts(s->out, p->debian)
			      : put_ruled(s->out, family->debian, module);
		if (r >= 0)
			r = buf_puts(s->out, registry ? "` (Debian) or " : "` (Debian)");
	}
	if (r >= 0 && registry) {
		if (dot && !p && strcmp(family->registry, "pip") == 0)
			module.len = (size_t)(dot - module.data);
		r = buf_puts(s->out, "`");
		if (r >= 0)
			r = put_piece(s->out, p ? span_of(p->registry) : module);
		if (r >= 0)
			r = buf_printf(s->out, "` (%s)", family->registry);
	}
	return r < 0 ? r : buf_puts(s->out, " on the host");
}

/*
 * The memory limit in force: the request's, or the default; and what one allocation asked for, if the message
 * says so.
 */
static int put_limit(struct sentence *s)
{
	const struct knob *k = knob_find("memory");
	const json_t *asked = json_object_get(json_object_get(s->in->source->request, "limits"),
					      "memory");
	const struct buf *said = &s->in->finding->message;
	int64_t bytes = k->preset, wanted;
	char text[32];
	int r;

	if (asked && knob_parse_json(k, asked, &bytes, NULL) < 0)
		bytes = k->preset;
	knob_format(k, bytes, text, sizeof(text));
	wanted = demand_in_words((struct span){ said->data, said->len });
	if (wanted <= bytes)
		return buf_puts(s->out, text);
	r = buf_printf(s->out, "%s; ", text);
	knob_format(k, wanted, text, sizeof(text));
	return r < 0 ? r : buf_printf(s->out, "%s were asked for at once", text);
}

/* Without a number "on line " becomes "on that line". */
static int put_line(struct sentence *s)
{
	struct buf *out = s->out;

	if (s->line > 0)
		return buf_printf(out, "%lld", (long long)s->line);
	if (out->len < 5 || strcmp(out->data + out->len - 4, "ine ") != 0)
		return buf_puts(out, "?");
	out->len -= 5;
	return buf_puts(out, out->data[out->len] == 'L' ? "That line" : "that line");
}

/* How a file gets to where the program looks for it. */
static int put_send(struct sentence *s)
{
	struct span name = slot(&s->slots, '1');
	size_t prefix = sizeof(ANALYSE_WORK);
	int r;

	if (span_starts(name, ANALYSE_WORK "/"))
		name = (struct span){ name.data + prefix, name.len - prefix };
	if (name.len > 0 && name.data[0] == '/')
		return buf_puts(s->out, "only /sandbox, /tmp and the system's own files are there");
	r = buf_puts(s->out, "send it along with `--file ");
	if (r >= 0)
		r = put_piece(s->out, name);
	return r < 0 ? r : buf_puts(s->out, "=PATH` (`files` in a request)");
}

static int put_key(struct sentence *s, struct span key)
{
	if (key.len == 1 && key.data[0] >= '1' && key.data[0] <= '3')
		return put_piece(s->out, slot(&s->slots, key.data[0]));
	if (span_is(key, "near"))
		return buf_puts(s->out, s->near);
	if (span_is(key, "line"))
		return put_line(s);
	if (span_is(key, "send"))
		return put_send(s);
	if (span_is(key, "package"))
		return put_package(s);
	if (span_is(key, "limit"))
		return put_limit(s);
	return -ENOENT;
}

static int put_sentence(struct sentence *s, const char *text)
{
	while (*text) {
		const char *end = *text == '{' ? strchr(text, '}') : NULL;
		int r = end ? put_key(s, (struct span){ text + 1, (size_t)(end - text - 1) })
			    : -ENOENT;

		if (r == -ENOENT) { /* a brace like any other character */
			r = buf_append(s->out, text, 1);
			text++;
		} else {
			text = end + 1;
		}
		if (r < 0)
			return r == -ENOBUFS ? 0 : r;
	}
	return 0;
}

static const struct import_hint *find_import(const struct family *family, struct span name)
{
	for (const struct import_hint *h = family ? family->imports : NULL; h && h->name; h++)
		if (span_is(name, h->name))
			return h;
	return NULL;
}

static int speak(struct sentence *s, const struct advice *row)
{
	const struct import_hint *hint = strcmp(row->category, "name") == 0
						 ? find_import(s->in->family, slot(&s->slots, '1'))
						 : NULL;

	if (hint)
		return buf_printf(s->out, "Add `%s`: `%s` is used but nothing declares it.",
				  hint->statement, hint->name);
	if (row->near)
		find_near(s);
	return put_sentence(s, s->near[0] ? row->near : row->text);
}

static const struct advice *find_any(const struct advice_input *in, struct span type,
				     struct span message, struct slots *ret)
{
	const struct advice *row = in->family ? find_row(in->family->advice, type, message, ret)
					      : NULL;

	return row ? row : find_row(advice_common, type, message, ret);
}

bool advice_is_of_memory(const struct advice_input *in)
{
	const struct finding *f = in->finding;
	const struct advice *row = NULL;
	struct slots slots;

	if (f->found)
		row = find_any(in, f->exception, (struct span){ f->message.data, f->message.len },
			       &slots);
	if (!row && f->cause_exception.len > 0)
		row = find_any(in, f->cause_exception, f->cause_message, &slots);
	return row && strstr(row->text, "{limit}");
}

int advice_find(const struct advice_input *in, struct advice_output *ret)
{
	const struct finding *f = in->finding;
	struct sentence s = { .in = in, .line = f->line, .out = &ret->text };
	const struct advice *row = NULL;
	int r = 0;

	buf_init(&ret->text, SENTENCE_MAX);
	ret->category = NULL;
	if (f->said) {
		ret->category = f->category;
		return buf_puts(&ret->text, f->said);
	}
	if (f->found)
		row = find_any(in, f->exception, (struct span){ f->message.data, f->message.len },
			       &s.slots);
	if (!row && f->cause_exception.len > 0) {
		row = find_any(in, f->cause_exception, f->cause_message, &s.slots);
		s.line = f->cause_line;
		if (row)
			r = buf_printf(&ret->text, "`%.*s` led to it: ",
				       (int)MIN(f->cause_exception.len, (size_t)PIECE_MAX),
				       f->cause_exception.data);
	}
	if (!row || r < 0)
		return r;
	ret->category = row->category;
	return speak(&s, row);
}
