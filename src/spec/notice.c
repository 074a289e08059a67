/* SPDX-License-Identifier: Apache-2.0 */
/* See notice.h. The flag and the value to try come from the knob table and the cause. */
#include "spec/notice.h"

#include "spec/knob.h"

#include <stdio.h>
#include <string.h>

int reduced_text(const struct isolation *is, char *ret, size_t size)
{
	size_t n;

	if (!is->tier || !is->missing[0])
		return 0;
	n = (size_t)snprintf(ret, size, "isolation is %s: without", is->tier);
	for (size_t i = 0; i < ARRAY_SIZE(is->missing) && is->missing[i] && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s %s", i > 0 ? "," : "", is->missing[i]);
	if (n < size)
		n += (size_t)snprintf(ret + n, size - n, "; `atoll doctor` says what completes it");
	return (int)n;
}

int notice_text(const struct result *res, char *ret, size_t size)
{
	const struct verdict *v = &res->verdict;
	const struct cause *c = &v->cause;
	const struct knob *k = c->limit_key ? knob_find(c->limit_key) : NULL;
	const char *stage = res->n_stages > 0 ? res->stages[res->n_stages - 1].name : "run";
	const char *who = strcmp(stage, "compile") == 0 ? "the compiler" : "the program";
	const char *warning = json_string_value(json_array_get(res->warnings, 0));
	char value[32];

	/* The program succeeded, but its changes to the workspace were not applied. */
	if (res->commit.error[0] && v->status == STATUS_SUCCESS)
		return snprintf(ret, size, "nothing was applied to the workspace: %s",
				res->commit.error);
	if (c->kind == CAUSE_EXIT || v->status == STATUS_SUCCESS)
		return warning ? snprintf(ret, size, "%s", warning) : 0;
	if (k && k->flag && c->suggest > 0 && strcmp(stage, "compile") != 0) {
		knob_flag_text(k, c->suggest, value, sizeof(value));
		return snprintf(ret, size, "%s %s; allow more with %s %s", who, c->detail, k->flag,
				value);
	}
	if (c->kind == CAUSE_SETUP)
		return snprintf(ret, size, "%s", c->detail);
	/* "killed by…", "cancelled by…", "stopped by…" need a verb; a limit's text has one. */
	return snprintf(ret, size, "%s %s%s", who, k ? "" : "was ", c->detail);
}
