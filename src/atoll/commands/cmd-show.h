/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show a report of the library as a table or, with --json, unchanged. */
#pragma once

#include "atoll/atoll.h"
#include "atoll/commands/cmd.h"

#include <jansson.h>

struct show {
	int (*ask)(struct atoll *a, char **json, char **problem);
	/* negative errno */
	int (*table)(const json_t *report, bool verbose, struct buf *out);
	int (*exit_code)(const json_t *report); /* NULL: 0 */
};

/* Their options. */
extern const struct option_list show_options;
int show_main(const struct command *self, struct arguments args, const struct show *show);

/* Items behind a margin, in lines of at most 80 columns. */
struct show_list {
	struct buf *out;
	const char *between;   /* "; " */
	size_t margin, column; /* column: how much is written on the line already */
};
int show_list_add(struct show_list *list, const char *fmt, ...) _printf_(2, 3);
