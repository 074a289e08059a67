/* SPDX-License-Identifier: Apache-2.0 */
/* See cmd-show.h. */
#include "atoll/commands/cmd-show.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"

enum { SHOW_BYTES_MAX = 256 << 10, SHOW_COLUMNS = 80 };

struct show_choice {
	bool json, verbose;
};

static const struct option rows[] = {
	{ .flag = "--json",
	  .help = "print JSON",
	  .apply = option_set_true,
	  .offset = offsetof(struct show_choice, json) },
	{ .flag = "--verbose",
	  .letter = 'v',
	  .help = "show every row",
	  .apply = option_set_true,
	  .offset = offsetof(struct show_choice, verbose) },
};

const struct option_list show_options = { .rows = rows, .n = ARRAY_SIZE(rows) };

int show_list_add(struct show_list *list, const char *fmt, ...)
{
	char item[400];
	size_t gap = strlen(list->between);
	bool first = list->column <= list->margin;
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(item, sizeof(item), fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if (first)
		r = buf_printf(list->out, "%*s", (int)(list->margin - list->column), "");
	else if (list->column + gap + strlen(item) < SHOW_COLUMNS)
		r = buf_puts(list->out, list->between);
	else
		r = buf_printf(list->out, "%.*s\n%*s", (int)strcspn(list->between, " "),
			       list->between, (int)list->margin, "");
	if (r < 0)
		return r;
	list->column = list->out->len;
	while (list->column > 0 && list->out->data[list->column - 1] != '\n')
		list->column--;
	list->column = list->out->len - list->column + strlen(item);
	return buf_puts(list->out, item);
}

static int print_report(const struct show *show, const struct show_choice *choice, const char *json)
{
	_cleanup_buf_ struct buf out = { 0 };
	json_t *report = json_loads(json, 0, NULL);
	int r = report ? 0 : -EINVAL, code = 0;

	buf_init(&out, SHOW_BYTES_MAX);
	if (r == 0 && !choice->json)
		r = show->table(report, choice->verbose, &out);
	if (r < 0) {
		say("cannot print the report: %s", strerror(-r));
		code = EXIT_OURS;
	} else {
		code = choice->json ? print_json(json) : print_out(&out);
	}
	if (code == 0 && show->exit_code)
		code = show->exit_code(report);
	json_decref(report);
	return code;
}

int show_main(const struct command *self, struct arguments args, const struct show *show)
{
	_cleanup_free_ char *json = NULL, *problem = NULL;
	struct show_choice choice = { 0 };
	struct error err = { 0 };
	struct atoll *atoll = NULL;
	int r = options_parse(self->options, &args, &choice, &err);

	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	r = atoll_new(NULL, &atoll, &problem);
	if (r == 0)
		r = show->ask(atoll, &json, &problem);
	if (r == 0) {
		r = print_report(show, &choice, json);
	} else {
		say("%s", problem ? problem : strerror(-r));
		r = EXIT_OURS;
	}
	(void)atoll_free(atoll);
	return r;
}
