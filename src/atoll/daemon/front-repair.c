/* SPDX-License-Identifier: Apache-2.0 */
/* See offline-repair.h: atolld's part. */
#include "atoll/daemon/offline-repair.h"

#include "engine/history/history.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int repair_history(const struct history_options *options, json_t **ret, struct error *err)
{
	_cleanup_(history_cleanup) struct history *h = NULL;
	struct history_repair *all = NULL;
	int r = history_open(options, &h, err);

	if (r == -EBUSY)
		return error_set(err, ERROR_STORAGE, EBUSY,
				 "a daemon has %s: name its address with --url or ATOLL_URL to "
				 "repair through it, or stop it",
				 options->dir);
	if (r == 0)
		r = history_repair_new(h, &all, err);
	while (r >= 0 && (r = history_repair_step(all, err)) > 0)
		(void)history_tick(h);
	if (r == 0) {
		*ret = history_repair_report(all);
		while (history_tick(h))
			;
	}
	(void)history_repair_free(all);
	return r;
}

int front_repair(const char *state_dir)
{
	char dir[PATH_MAX], node[65] = "";
	const struct history_options options = { .dir = dir, .node = node };
	struct error err = { 0 };
	json_t *report = NULL;
	int r;

	(void)snprintf(dir, sizeof(dir), "%s/history", state_dir);
	(void)gethostname(node, sizeof(node) - 1);
	r = repair_history(&options, &report, &err);
	if (r == 0 && json_dumpf(report, stdout, JSON_COMPACT) < 0)
		r = error_oom(&err);
	json_decref(report);
	if (r < 0)
		(void)printf("%s", err.text);
	return r < 0 || fflush(stdout) != 0;
}
