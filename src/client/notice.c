/* SPDX-License-Identifier: Apache-2.0 */
/* See notice.h. The flag and the value worth trying come from the knob table and the cause. */
#include "client/notice.h"

#include "spec/knob.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A value as the flag takes it: "1g", "60s", "200". */
static void flag_value(const struct knob *k, int64_t value, char *ret, size_t size)
{
	static const struct {
		int64_t unit;
		char letter;
	} sizes[] = { { GiB, 'g' }, { MiB, 'm' }, { KiB, 'k' } };

	if (k->kind == KNOB_TIME) {
		bool whole = value % MS_PER_SEC == 0;

		(void)snprintf(ret, size, "%" PRId64 "%s",
			       (int64_t)(whole ? value / MS_PER_SEC : value), whole ? "s" : "ms");
		return;
	}
	for (size_t i = 0; k->kind == KNOB_SIZE && i < ARRAY_SIZE(sizes); i++) {
		if (value >= sizes[i].unit && value % sizes[i].unit == 0) {
			(void)snprintf(ret, size, "%" PRId64 "%c", value / sizes[i].unit,
				       sizes[i].letter);
			return;
		}
	}
	(void)snprintf(ret, size, "%" PRId64, value);
}

int notice_text(const struct result *res, char *ret, size_t size)
{
	const struct verdict *v = &res->verdict;
	const struct cause *c = &v->cause;
	const struct knob *k = c->limit_key ? knob_find(c->limit_key) : NULL;
	const char *stage = res->n_stages > 0 ? res->stages[res->n_stages - 1].name : "run";
	const char *who = strcmp(stage, "compile") == 0 ? "the compiler" : "the program";
	char value[32];

	if (c->kind == CAUSE_EXIT || v->status == STATUS_SUCCESS)
		return 0;
	if (k && k->flag && c->suggest > 0 && strcmp(stage, "compile") != 0) {
		flag_value(k, c->suggest, value, sizeof(value));
		return snprintf(ret, size, "%s %s; allow more with %s %s", who, c->detail, k->flag,
				value);
	}
	if (c->kind == CAUSE_SETUP)
		return snprintf(ret, size, "%s", c->detail);
	/* "killed by…", "cancelled by…", "stopped by…" want a verb; what a limit says has one. */
	return snprintf(ret, size, "%s %s%s", who, k ? "" : "was ", c->detail);
}
