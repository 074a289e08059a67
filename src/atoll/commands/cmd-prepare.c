/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll prepare`: makes files ahead that a compiler would otherwise make at its first compile
 * (run/toolchain/kit.h). A pool does the same by itself, after its other work.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "run/kit-prepare.h"

/* A terminal shows what takes the time; the line is written over. */
static void say_kit(void *data, const char *title, const char *text)
{
	_cleanup_buf_ struct buf line = { .max = 400 };
	const bool *is_terminal = data;
	int r = 0;

	if (*is_terminal)
		r = buf_printf(&line,
			       text ? STYLE_CLEAR_LINE
				    : STYLE_CLEAR_LINE
				       "atoll: preparing %s, which takes up to half a minute",
			       title);
	if (r == 0)
		(void)!print_text(STDERR_FILENO, (struct span){ line.data, line.len });
	line.len = 0;
	if (text && buf_printf(&line, "%-12s %s\n", title, text) == 0)
		(void)!print_out(&line);
}

enum { LANGUAGES_MAX = 64 };

struct wanted_languages {
	const char *names[LANGUAGES_MAX + 1];
	size_t n;
};

static int add_language(void *data, const char *word, struct error *err)
{
	struct wanted_languages *w = data;

	if (w->n == LANGUAGES_MAX)
		return error_set(err, ERROR_INPUT, E2BIG, "more than %d languages", LANGUAGES_MAX);
	w->names[w->n++] = word;
	return 0;
}

static const struct option_list prepare_options = { .word = add_language };

static int prepare_main(const struct command *self, int argc, char **argv)
{
	const struct atoll_options options = { .size = sizeof(options), .pool = "" };
	struct wanted_languages wanted = { 0 };
	bool is_terminal = isatty(STDERR_FILENO);
	const struct kit_watch watch = {
		.say = say_kit, .data = &is_terminal, .only = wanted.names, .cancel_fd = -EBADF
	};
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_free_ char *problem = NULL;
	struct error err = { 0 };
	struct atoll *a;
	int r = options_parse(self->options, &args, &wanted, &err);

	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	if (atoll_new(&options, &a, &problem) < 0) {
		say("%s", problem ? problem : "out of memory");
		return EXIT_OURS;
	}
	r = kit_prepare(a, &watch, &err);
	if (is_terminal)
		(void)!print_text(STDERR_FILENO, span_of(STYLE_CLEAR_LINE));
	(void)atoll_free(a);
	return r < 0 ? say_error(&err) : 0;
}

const struct command cmd_prepare = {
	.name = "prepare",
	.usage = "[LANGUAGE...]",
	.summary = "prepare files that speed up first compiles",
	.details =
		"The files (precompiled headers, a compiled standard library) are made for each "
		"installed\n"
		"compiler and kept in the cache directory (root: /var/cache/atoll; $ATOLL_KIT_DIR "
		"names another).\n",
	.options = &prepare_options,
	.main = prepare_main,
};
