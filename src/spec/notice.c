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

static const char *member_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static long long member_number(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

static int put_side(struct buf *out, const char *text, const char *nothing)
{
	return text ? buf_printf(out, "\"%s\"", text) : buf_puts(out, nothing);
}

int test_text(const json_t *test, struct buf *out)
{
	const json_t *difference = json_object_get(test, "difference");
	const json_t *error = json_object_get(test, "error");
	const char *message = member_text(test, "message"), *type = member_text(error, "type");
	const char *detail = member_text(json_object_get(test, "cause"), "detail");
	int r;

	if (message)
		return buf_printf(out, "%.*s", (int)strcspn(message, "\r\n"), message);
	if (json_is_true(json_object_get(test, "passed")))
		return 0;
	if (json_is_object(difference)) {
		r = buf_printf(out, "line %lld, column %lld: expected ",
			       member_number(difference, "line"),
			       member_number(difference, "column"));
		if (r >= 0)
			r = put_side(out, member_text(difference, "expected"), "nothing more");
		if (r >= 0)
			r = buf_puts(out, ", got ");
		return r < 0 ? r : put_side(out, member_text(difference, "got"), "nothing more");
	}
	if (!type)
		return buf_puts(out, detail ? detail : "");
	message = member_text(error, "message");
	r = buf_puts(out, type);
	if (r >= 0 && message && *message)
		r = buf_printf(out, ": %.*s", (int)strcspn(message, "\r\n"), message);
	if (r >= 0 && member_number(error, "line") > 0)
		r = buf_printf(out, " (line %lld)", member_number(error, "line"));
	return r;
}
