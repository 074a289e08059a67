/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See repl-input.h. One pass over the text follows strings, comments and brackets. Code goes on when one of them is open, after a
 * backslash or an operator at the end of a line, and
 *
 *   Python       in a block (a line that ends with a colon, or a decorator), until an empty line
 *   Ruby, Bash   while more words open a block than close one, and until the end of a here-document
 *
 * Words are looked at where a command begins: `x if y` of Ruby opens no block.
 */
#include "atoll/commands/repl-input.h"

#include "base/macro.h"

#include <ctype.h>
#include <string.h>

enum { WORD_MAX = 16 };

struct repl_language {
	const char *name;
	const char *quotes;
	const char *comment; /* to the end of the line */
	const char *tails;   /* characters after which a line goes on; NULL: none */
	bool indents;	/* blocks are indented; strings end with their line, or have three quotes */
	bool raw;	/* in single quotes a backslash is a backslash */
	bool do_opens;	/* also `do` at the end of a line opens a block */
	bool documents; /* it has here-documents: <<WORD, and lines until WORD */
	const char *const *open; /* words that open a block; NULL: none */
	const char *const *close;
	const char *const *leave; /* commands that end the conversation */
};

static const char *const ruby_open[] = { "def",	  "class", "module", "begin", "if", "unless",
					 "while", "until", "case",   "for",   NULL };
static const char *const ruby_close[] = { "end", NULL };
static const char *const bash_open[] = { "if", "case", "do", NULL };
static const char *const bash_close[] = { "fi", "esac", "done", NULL };

static const char *const python_leave[] = { "exit", "exit()", "quit", "quit()", NULL };
static const char *const javascript_leave[] = { ".exit", "process.exit()", NULL };
static const char *const ruby_leave[] = { "exit", "quit", NULL };
static const char *const bash_leave[] = { "exit", "logout", NULL };

static const struct repl_language repl_languages[] = {
	{ .name = "python",
	  .quotes = "\"'",
	  .comment = "#",
	  .indents = true,
	  .leave = python_leave },
	{ .name = "javascript",
	  .quotes = "\"'`",
	  .comment = "//",
	  .tails = "=,&|?*%^<>",
	  .leave = javascript_leave },
	{ .name = "ruby",
	  .quotes = "\"'`",
	  .comment = "#",
	  .tails = "=,&.",
	  .do_opens = true,
	  .documents = true,
	  .open = ruby_open,
	  .close = ruby_close,
	  .leave = ruby_leave },
	{ .name = "bash",
	  .quotes = "\"'`",
	  .comment = "#",
	  .tails = "|",
	  .raw = true,
	  .documents = true,
	  .open = bash_open,
	  .close = bash_close,
	  .leave = bash_leave },
};

struct reading {
	const struct repl_language *is;
	struct span text;
	size_t at;
	int depth;	      /* of brackets */
	int blocks;	      /* opened by words */
	bool begins;	      /* a command begins here */
	bool loops;	      /* the line began with a loop, whose `do` opens no second block */
	bool open;	      /* a string or a line goes on */
	char last;	      /* character of the line that is no blank or comment; 0: none */
	bool has_block;	      /* a line ended with a colon, or was a decorator */
	struct span document; /* the word that ends the here-document of this line; none: empty */
};

static char reading_peek(const struct reading *r, size_t ahead)
{
	return r->at + ahead < r->text.len ? r->text.data[r->at + ahead] : '\0';
}

static bool reading_is_at(const struct reading *r, const char *word)
{
	size_t n = strlen(word);

	return r->text.len - r->at >= n && memcmp(r->text.data + r->at, word, n) == 0;
}

/* Passes over a string; without an end, the text is open. */
static void skip_string(struct reading *r)
{
	char quote = reading_peek(r, 0);
	size_t n = r->is->indents && reading_peek(r, 1) == quote && reading_peek(r, 2) == quote ? 3
												: 1;

	r->at += n;
	while (r->at < r->text.len) {
		if (reading_peek(r, 0) == '\\' && !(r->is->raw && quote == '\'')) {
			r->at += 2;
			continue;
		}
		if (n == 1 && r->is->indents && reading_peek(r, 0) == '\n')
			return; /* the interpreter will say so */
		if (reading_peek(r, 0) == quote &&
		    (n == 1 || (reading_peek(r, 1) == quote && reading_peek(r, 2) == quote))) {
			r->at += n;
			return;
		}
		r->at++;
	}
	r->open = true;
}

static bool is_word_character(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool lists_word(const char *const *list, const char *word)
{
	for (; list && *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

/* "do" of Ruby stands behind a command: it is the last word of its line, or |names| follow. */
static bool is_ruby_do(const struct reading *r, const char *word)
{
	size_t i = 0;

	if (!r->is->do_opens || strcmp(word, "do") != 0 || r->loops)
		return false;
	while (reading_peek(r, i) == ' ')
		i++;
	return reading_peek(r, i) == '\n' || reading_peek(r, i) == '\0' ||
	       reading_peek(r, i) == '|';
}

static void take_word(struct reading *r)
{
	static const char *const loops[] = { "while", "until", "for", NULL };
	/* After these words, a command of Bash begins. */
	static const char *const leading[] = { "then", "do",	"else",	 "elif",
					       "if",   "while", "until", NULL };
	char word[WORD_MAX] = "";
	size_t n = 0;

	for (; is_word_character(reading_peek(r, 0)); r->at++)
		if (n < sizeof(word) - 1)
			word[n++] = reading_peek(r, 0);
	r->last = 'a';
	if ((r->begins && lists_word(r->is->open, word)) || is_ruby_do(r, word))
		r->blocks++;
	else if (r->begins && lists_word(r->is->close, word))
		r->blocks--;
	r->loops = r->loops || (r->begins && lists_word(loops, word));
	r->begins = r->begins && lists_word(leading, word);
}

/*
 * Takes <<WORD; false: there is none. In Ruby, a value right before it, or a small letter after it, makes an operator. Bash has <<< for a
 * word, and << as an operator in (( )).
 */
static bool take_document(struct reading *r)
{
	size_t n = 2, begin;

	if (!r->is->documents || !reading_is_at(r, "<<") || (r->is->raw && r->depth > 1))
		return false;
	if (r->is->raw && reading_is_at(r, "<<<")) {
		r->at += 3;
		return true;
	}
	if (!r->is->raw && r->at > 0 && is_word_character(r->text.data[r->at - 1]))
		return false;
	n += reading_peek(r, n) == '-' || reading_peek(r, n) == '~';
	while (r->is->raw && reading_peek(r, n) == ' ')
		n++;
	n += reading_peek(r, n) != '\0' && strchr(r->is->quotes, reading_peek(r, n));
	begin = n;
	if (isdigit((unsigned char)reading_peek(r, n)) ||
	    (!r->is->raw && n == 2 && !isupper((unsigned char)reading_peek(r, n))))
		return false;
	while (is_word_character(reading_peek(r, n)))
		n++;
	if (n == begin)
		return false;
	r->document = (struct span){ r->text.data + r->at + begin, n - begin };
	r->at += n + (reading_peek(r, n) != '\0' && strchr(r->is->quotes, reading_peek(r, n)));
	r->last = 'a';
	r->begins = false;
	return true;
}

/* The lines of a here-document. Without an end, its word stays. */
static void skip_document(struct reading *r)
{
	while (r->document.len > 0 && r->at < r->text.len) {
		const char *line = r->text.data + r->at;
		const char *end = memchr(line, '\n', r->text.len - r->at);
		size_t len = end ? (size_t)(end - line) : r->text.len - r->at;
		struct span word = span_trim((struct span){ line, len });

		r->at += len + (end ? 1 : 0);
		if (word.len == r->document.len &&
		    memcmp(word.data, r->document.data, word.len) == 0)
			r->document.len = 0;
	}
}

static bool goes_on_after(const struct repl_language *is, char c)
{
	return is->tails && c && strchr(is->tails, c);
}

static void end_line(struct reading *r)
{
	r->at++;
	skip_document(r);
	r->open = r->last == '\\' || goes_on_after(r->is, r->last);
	if (r->is->indents && r->depth == 0 && r->last == ':')
		r->has_block = true;
	r->last = '\0';
	r->begins = true;
	r->loops = false;
}

static void take_character(struct reading *r)
{
	char c = reading_peek(r, 0);

	if (c == '@' && r->is->indents && !r->last && r->depth == 0)
		r->has_block = true;
	if (strchr("([{", c))
		r->depth++;
	else if (strchr(")]}", c) && r->depth > 0)
		r->depth--;
	if (!isspace((unsigned char)c)) {
		r->last = c;
		r->begins = strchr(";&|(!", c) != NULL;
	}
	r->at++;
	/* A character behind a backslash has no meaning of its own. */
	if (c == '\\' && reading_peek(r, 0) != '\n' && reading_peek(r, 0) != '\0') {
		r->at++;
		r->last = 'a';
	}
}

static void read_code(struct reading *r)
{
	while (r->at < r->text.len) {
		char c = reading_peek(r, 0);
		bool between = !r->last ||
			       isspace((unsigned char)(r->at > 0 ? r->text.data[r->at - 1] : ' '));

		if (c == '\n')
			end_line(r);
		else if (take_document(r))
			continue;
		else if (reading_is_at(r, r->is->comment) &&
			 (between || r->is->comment[1] || r->is->indents))
			while (r->at < r->text.len && reading_peek(r, 0) != '\n')
				r->at++;
		else if (strchr(r->is->quotes, c)) {
			skip_string(r);
			r->last = 'a';
			r->begins = false;
		} else if (is_word_character(c))
			take_word(r);
		else
			take_character(r);
	}
}

/* The line before the end is empty. */
static bool ends_empty(struct span text)
{
	size_t n = text.len;

	if (n > 0 && text.data[n - 1] == '\n')
		n--;
	while (n > 0 && (text.data[n - 1] == ' ' || text.data[n - 1] == '\t'))
		n--;
	return n == 0 || text.data[n - 1] == '\n';
}

static const struct repl_language *find_repl_language(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(repl_languages); i++)
		if (strcmp(repl_languages[i].name, name) == 0)
			return &repl_languages[i];
	return NULL;
}

/* Without blanks and line breaks around it. */
static struct span trim_code(struct span text)
{
	while (text.len > 0 && isspace((unsigned char)text.data[0])) {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && isspace((unsigned char)text.data[text.len - 1]))
		text.len--;
	return text;
}

bool repl_is_blank(struct span text)
{
	return trim_code(text).len == 0;
}

bool repl_is_goodbye(const char *language, struct span text)
{
	const struct repl_language *is = find_repl_language(language);
	const struct span line = trim_code(text);

	for (const char *const *word = is ? is->leave : NULL; word && *word; word++)
		if (line.len == strlen(*word) && memcmp(line.data, *word, line.len) == 0)
			return true;
	return false;
}

bool repl_is_complete(const char *language, struct span text)
{
	struct reading r = { .is = find_repl_language(language), .text = text, .begins = true };

	if (!r.is)
		return true;
	read_code(&r);
	if (r.last == ':' && r.is->indents && r.depth == 0)
		r.has_block = true;
	if (r.open || r.last == '\\' || goes_on_after(r.is, r.last) || r.depth > 0 ||
	    r.blocks > 0 || r.document.len > 0)
		return false;
	return !r.has_block || ends_empty(text);
}
