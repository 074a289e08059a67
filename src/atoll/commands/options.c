/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. */
#include "atoll/commands/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/suggest.h"

/* One flag on the command line. */
struct flag {
	const char *text;  /* the whole word, for messages */
	char name[64];	   /* "--memory" or "-m" */
	const char *value; /* in the same word, or NULL */
};

int option_set_true(void *data, const struct option *self, const char *value _unused_,
		    struct error *err _unused_)
{
	*(bool *)((char *)data + self->offset) = true;
	return 0;
}

int option_set_text(void *data, const struct option *self, const char *value,
		    struct error *err _unused_)
{
	*(const char **)((char *)data + self->offset) = value;
	return 0;
}

static void flag_split(const char *word, struct flag *ret)
{
	bool is_long = word[1] == '-';
	size_t n = is_long ? strcspn(word, "=") : 2;

	*ret = (struct flag){ .text = word };
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)MIN(n, sizeof(ret->name) - 1),
		       word);
	if (word[n] != '\0')
		ret->value = word + n + (is_long ? 1 : 0);
}

static bool flag_names(const char *flag, char letter, const char *name)
{
	if (name[1] == '-')
		return flag && strcmp(flag, name) == 0;
	return letter && letter == name[1];
}

/* NULL after the last row. */
static const struct option *row_at(const struct option_list *list, size_t i)
{
	if (i < list->n)
		return &list->rows[i];
	return list->more ? list->more(i - list->n) : NULL;
}

static const struct option *find_option(const struct option_list *list, const char *name)
{
	const struct option *row;
	size_t i = 0;

	while ((row = row_at(list, i++)) && !flag_names(row->flag, row->letter, name))
		;
	return row;
}

/* The i-th limit that the list has, or NULL after the last. */
static const struct knob *limit_at(const struct option_list *list, size_t i)
{
	for (size_t at = 0; list->limit && at < limit_knobs_count; at++)
		if ((limit_knobs[at].per_turn || !list->turn_limits) && i-- == 0)
			return &limit_knobs[at];
	return NULL;
}

static int unknown_flag(const struct option_list *list, const struct flag *flag, struct error *err)
{
	const struct option *row;
	const struct knob *knob;
	struct suggestion s = { 0 };

	for (size_t i = 0; (row = row_at(list, i)); i++)
		if (row->flag && row->help)
			suggest_offer(&s, flag->name, row->flag);
	for (size_t i = 0; (knob = limit_at(list, i)); i++)
		if (knob->flag)
			suggest_offer(&s, flag->name, knob->flag);
	suggest_offer(&s, flag->name, "--help");
	if (s.best)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unknown option '%.60s'; did you mean '%s'?", flag->name, s.best);
	return error_set(err, ERROR_INPUT, EINVAL, "unknown option '%.60s'; see --help%s",
			 flag->name,
			 list->has_program ? ", or put options of the program after --" : "");
}

/* Applies the letters at the beginning of a word that take no value ("-qtl bash"); the flag is then the first that takes one. */
static int apply_letters(const struct option_list *list, struct flag *flag, void *data,
			 struct error *err)
{
	const struct option *option;
	int r = 0;

	while (r == 0 && flag->value && flag->name[1] != '-') {
		option = find_option(list, flag->name);
		if (!option || option->argument)
			break;
		r = option->apply(data, option, NULL, err);
		flag->name[1] = flag->value[0];
		flag->value = flag->value[1] ? flag->value + 1 : NULL;
	}
	return r;
}

static int apply_flag(const struct option_list *list, struct arguments *args, int *at, void *data,
		      struct error *err)
{
	const struct option *option;
	const struct knob *knob = NULL;
	struct flag flag;
	const char *next;
	size_t i = 0;
	int r;

	flag_split(args->argv[*at], &flag);
	r = apply_letters(list, &flag, data, err);
	if (r < 0)
		return r;
	option = find_option(list, flag.name);
	while (!option && (knob = limit_at(list, i++)) &&
	       !flag_names(knob->flag, knob->letter, flag.name))
		;
	if (!option && !knob)
		return unknown_flag(list, &flag, err);
	if (option && !option->argument) {
		if (flag.value)
			return error_set(err, ERROR_INPUT, EINVAL, "option '%s' takes no value",
					 flag.name);
		return option->apply(data, option, NULL, err);
	}
	next = !flag.value && *at + 1 < args->argc ? args->argv[*at + 1] : "";
	/* No limit is written like an option; any other value may be. */
	if (knob && next[0] == '-' && find_option(list, next))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "option '%s' needs a value, and '%s' is an option", flag.name,
				 next);
	/* The attached value, or the next word, which is then consumed. */
	if (!flag.value && *at + 1 >= args->argc)
		return error_set(err, ERROR_INPUT, EINVAL, "option '%s' needs a value", flag.name);
	if (!flag.value)
		flag.value = args->argv[++*at];
	return option ? option->apply(data, option, flag.value, err)
		      : list->limit(data, knob, flag.value, err);
}

int options_parse(const struct option_list *list, struct arguments *args, void *data,
		  struct error *err)
{
	const bool takes_words = list->word || list->words;
	int64_t number;
	int r = 0;

	args->rest = args->argc;
	args->words = args->argv + 1;
	for (int i = 1; r == 0 && i < args->argc; i++) {
		char *word = args->argv[i];

		if (strcmp(word, "--") == 0) {
			args->rest = i + 1;
			break;
		}
		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
			return 1;
		/* No option is a number, and "-1" is a word of some commands. */
		if (word[0] == '-' && word[1] != '\0' &&
		    !(takes_words && parse_i64(word + 1, &number) == 0))
			r = apply_flag(list, args, &i, data, err);
		else if (list->word)
			r = list->word(data, word, err);
		else if (!list->words)
			r = error_set(err, ERROR_INPUT, EINVAL,
				      "'%s' takes no argument, but got '%.100s'; see --help",
				      args->argv[0], word);
		else if (args->n_words == WORDS_COLLECTED_MAX)
			r = error_set(err, ERROR_INPUT, E2BIG, "more than %d %s",
				      WORDS_COLLECTED_MAX, list->words);
		else
			args->words[args->n_words++] = word;
	}
	/* They never overtake the words that are still to be read. */
	assert(args->n_words < (size_t)MAX(args->argc, 1));
	return r;
}

bool options_describe(const struct option_list *list, size_t i, struct option_text *ret)
{
	static const char *const arguments[] = {
		[KNOB_SIZE] = "SIZE", [KNOB_TIME] = "TIME", [KNOB_COUNT] = "N", [KNOB_CPUS] = "N"
	};
	const struct option *option;
	const struct knob *knob;
	char preset[48];
	size_t n = 0;

	*ret = (struct option_text){ 0 };
	for (size_t at = 0; (option = row_at(list, at)); at++) {
		if (!option->help || n++ != i)
			continue;
		ret->letter = option->letter;
		(void)snprintf(ret->left, sizeof(ret->left), "%s%s%s", option->flag,
			       option->argument ? " " : "", option->argument ?: "");
		(void)snprintf(ret->help, sizeof(ret->help), "%s", option->help);
		return true;
	}
	knob = limit_at(list, i - n);
	if (!knob)
		return false;
	ret->letter = knob->letter;
	ret->is_limit = true;
	(void)snprintf(ret->left, sizeof(ret->left), "%s %s", knob->flag, arguments[knob->kind]);
	knob_format(knob, knob->preset, preset, sizeof(preset));
	(void)snprintf(ret->help, sizeof(ret->help), "%s [%s]", knob->help, preset);
	return true;
}

void options_print(const struct option_list *list, struct page *out)
{
	enum { HELP_COLUMN = 26 };
	struct option_text row;
	bool limits = false;

	page_add(out, "%s", list->n > 0 ? "\nOptions:\n" : "");
	for (size_t i = 0; options_describe(list, i, &row); i++) {
		const char letter[] = { '-', row.letter, ',', ' ', '\0' };
		char column[80];

		if (row.is_limit && !limits)
			page_add(out, "\n" OPTIONS_LIMITS ":\n");
		limits = row.is_limit;
		(void)snprintf(column, sizeof(column), "  %s%s", row.letter ? letter : "    ",
			       row.left);
		if (strlen(column) > HELP_COLUMN)
			page_add(out, "%s\n%*s%s\n", column, HELP_COLUMN + 2, "", row.help);
		else
			page_add(out, "%-*s  %s\n", HELP_COLUMN, column, row.help);
	}
}
