/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The family's rows are tried in order, then the common ones, for the error itself; if none fits,
 * for its cause. A row may ask for the word of the program that is nearest to the unknown one, by edit
 * distance. A message is untrusted: its pieces are cut, and line ends removed, before they are part of a
 * sentence.
 */
#include "run/analyse/family.h"

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
	int r; /* the first failure: nothing is put after it */
};

#define put(s, ...) ((s)->r < 0 ? (void)0 : (void)((s)->r = buf_printf((s)->out, __VA_ARGS__)))

static const struct advice *find_row(const struct advice *rows, struct span type,
				     struct span message, struct slots *ret)
{
	for (const struct advice *row = rows; row && row->category; row++) {
		const char *want = row->exception, *star = want ? strchr(want, '*') : NULL;
		bool fits = !want || span_is(type, want);

		if (star && type.len >= (size_t)(star - want))
			fits = strncmp(want, type.data ? type.data : "", (size_t)(star - want)) ==
			       0;
		if (fits && text_match(&row->match, message, ret))
			return row;
	}
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

static void put_piece(struct sentence *s, struct span piece)
{
	size_t n = MIN(piece.len, (size_t)PIECE_MAX);

	/* Not inside a character. */
	while (n > 0 && n < piece.len && (piece.data[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n && s->r >= 0; i++)
		s->r = buf_append(s->out, (unsigned char)piece.data[i] < ' ' ? " " : &piece.data[i],
				  1);
	if (n < piece.len)
		put(s, "…");
}

/* {1} in a rule of naming, as Debian spells it: lower case, "-" for "_", "/" and "::". */
static void put_ruled(struct sentence *s, const char *rule, struct span module)
{
	const char *hole = strstr(rule, "{1}");

	put(s, "%.*s", (int)(hole - rule), rule);
	for (size_t i = 0; i < MIN(module.len, (size_t)PIECE_MAX); i++) {
		char c = (char)tolower((unsigned char)module.data[i]);

		if (c == ':' && i + 1 < module.len && module.data[i + 1] == ':')
			i++;
		put(s, "%c", c == '_' || c == '/' || c == ':' ? '-' : c);
	}
	put(s, "%s", hole + 3);
}

/* "install `python3-opencv` (Debian) or `opencv-python` (pip) on the host" */
static void put_package(struct sentence *s)
{
	const struct family *family = s->in->family;
	struct span module = slot(&s->slots, '1');
	const struct package_hint *p = family ? family->packages : NULL;
	const char *dot = module.len > 0 ? memchr(module.data, '.', module.len) : NULL;
	bool debian, registry;

	for (; p && p->module; p++) {
		size_t n = strlen(p->module);

		if (module.len >= n && memcmp(module.data, p->module, n) == 0 &&
		    (module.len == n || strchr("./:", module.data[n])))
			break;
	}
	if (p && !p->module)
		p = NULL;
	debian = p ? p->debian != NULL : family && family->debian;
	registry = family && family->registry && (!p || p->registry);
	if (!debian && !registry) {
		put(s, "check its name, or install on the host what provides it");
		return;
	}
	put(s, "install ");
	if (debian) {
		put(s, "`");
		if (p)
			put(s, "%s", p->debian);
		else
			put_ruled(s, family->debian, module);
		put(s, "` (Debian)%s", registry ? " or " : "");
	}
	if (registry) {
		if (dot && !p && strcmp(family->registry, "pip") == 0)
			module.len = (size_t)(dot - module.data);
		put(s, "`");
		put_piece(s, p ? span_of(p->registry) : module);
		put(s, "` (%s)", family->registry);
	}
	put(s, " on the host");
}

/*
 * The memory limit in force: the request's, or the default; and what one allocation asked for, if the message
 * says so.
 */
static void put_limit(struct sentence *s)
{
	const struct knob *k = knob_find("memory");
	const json_t *asked = json_object_get(json_object_get(s->in->source->request, "limits"),
					      "memory");
	const struct buf *said = &s->in->finding->message;
	int64_t bytes = k->preset, wanted;
	char text[32];

	if (asked && knob_parse_json(k, asked, &bytes, NULL) < 0)
		bytes = k->preset;
	knob_format(k, bytes, text, sizeof(text));
	put(s, "%s", text);
	wanted = demand_in_words((struct span){ said->data, said->len });
	if (wanted <= bytes)
		return;
	knob_format(k, wanted, text, sizeof(text));
	put(s, "; %s were asked for at once", text);
}

/* Without a number "on line " becomes "on that line". */
static void put_line(struct sentence *s)
{
	struct buf *out = s->out;

	if (s->line > 0) {
		put(s, "%lld", (long long)s->line);
	} else if (out->len < 5 || strcmp(out->data + out->len - 4, "ine ") != 0) {
		put(s, "?");
	} else {
		out->len -= 5;
		put(s, out->data[out->len] == 'L' ? "That line" : "that line");
	}
}

/* How a file gets to where the program looks for it. */
static void put_send(struct sentence *s)
{
	struct span name = slot(&s->slots, '1');
	size_t prefix = sizeof(ANALYSE_WORK);

	if (span_starts(name, ANALYSE_WORK "/"))
		name = (struct span){ name.data + prefix, name.len - prefix };
	if (name.len > 0 && name.data[0] == '/') {
		put(s, "only /sandbox, /tmp and the system's own files are there");
		return;
	}
	put(s, "send it along with `--file ");
	put_piece(s, name);
	put(s, "=PATH` (`files` in a request)");
}

/* The name in braces; false: there is none of that name. */
static bool put_key(struct sentence *s, struct span key)
{
	static const struct {
		const char *name;
		void (*write)(struct sentence *s);
	} keys[] = {
		{ "line", put_line },
		{ "send", put_send },
		{ "package", put_package },
		{ "limit", put_limit },
	};

	if (key.len == 1 && key.data[0] >= '1' && key.data[0] <= '3') {
		put_piece(s, slot(&s->slots, key.data[0]));
		return true;
	}
	if (span_is(key, "near")) {
		put(s, "%s", s->near);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (span_is(key, keys[i].name)) {
			keys[i].write(s);
			return true;
		}
	return false;
}

/* -ENOMEM is the only failure: a sentence that does not fit is cut. */
static int speak(struct sentence *s, const struct advice *row)
{
	const struct import_hint *hint = s->in->family ? s->in->family->imports : NULL;
	const char *text = row->text;

	while (hint && hint->name && !span_is(slot(&s->slots, '1'), hint->name))
		hint++;
	if (strcmp(row->category, "name") == 0 && hint && hint->name)
		return buf_printf(s->out, "Add `%s`: `%s` is used but nothing declares it.",
				  hint->statement, hint->name);
	if (row->near)
		find_near(s);
	if (s->near[0])
		text = row->near;
	while (*text && s->r >= 0) {
		const char *end = *text == '{' ? strchr(text, '}') : NULL;

		if (end && put_key(s, (struct span){ text + 1, (size_t)(end - text - 1) })) {
			text = end + 1;
		} else { /* a brace like any other character */
			s->r = buf_append(s->out, text, 1);
			text++;
		}
	}
	return s->r == -ENOBUFS ? 0 : s->r;
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
