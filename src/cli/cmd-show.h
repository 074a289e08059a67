/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show a report of the library as a table or, with --json, unchanged. */
#pragma once

#include "atoll/atoll.h"
#include "cli/cmd.h"

#include <jansson.h>

struct show {
	int (*ask)(struct atoll *a, char **json, char **problem);
	int (*table)(const json_t *report, struct buf *out); /* negative errno */
	int (*exit_code)(const json_t *report);		     /* NULL: 0 */
};

/* Their one option. */
extern const struct option_list show_options;
int show_main(const struct command *self, struct arguments args, const struct show *show);
