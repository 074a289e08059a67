/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See remote.h. Turns a result in JSON back into the parts of a struct that the exit code and the sentence
 * about the end need, so that a run prints the same through a daemon and without one.
 */
#include "atoll/commands/remote.h"

#include <stdio.h>
#include <string.h>

#include "atoll/remote/remote-text.h"
#include "spec/knob.h"
#include "spec/notice.h"
#include "spec/result.h"

static enum run_status read_status(const json_t *result)
{
	const char *name = text_of(result, "status");

	for (int i = 0; i < _STATUS_MAX; i++)
		if (strcmp(status_name((enum run_status)i), name) == 0)
			return (enum run_status)i;
	return STATUS_INTERNAL_ERROR;
}

static enum cause_kind read_kind(const json_t *cause)
{
	const char *name = text_of(cause, "kind");

	for (int i = 0; i < _CAUSE_MAX; i++)
		if (strcmp(cause_name((enum cause_kind)i), name) == 0)
			return (enum cause_kind)i;
	return CAUSE_INTERNAL;
}

static void read_cause(const json_t *from, struct cause *ret)
{
	const struct knob *k = knob_find(text_of(from, "limit_key"));

	ret->kind = read_kind(from);
	(void)snprintf(ret->detail, sizeof(ret->detail), "%s", text_of(from, "detail"));
	ret->limit_key = k ? k->key : NULL;
	ret->suggest = -1;
	if (k && knob_parse_json(k, json_object_get(from, "suggest"), &ret->suggest, NULL) < 0)
		ret->suggest = -1;
}

static void read_isolation(const json_t *from, struct isolation *ret)
{
	const json_t *missing = json_object_get(from, "missing");

	*ret = (struct isolation){ .tier = json_string_value(json_object_get(from, "tier")) };
	/* One place is for the end of the list. */
	for (size_t i = 0; i + 1 < ARRAY_SIZE(ret->missing); i++)
		ret->missing[i] = json_string_value(json_array_get(missing, i));
}

void remote_end(const json_t *result, struct remote_ending *ret)
{
	const json_t *stages = json_object_get(result, "stages");
	const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
	struct result_stage stage = { 0 };
	/*
	 * Of setup failures, a daemon reports two in a result: a missing runtime, and, after a stage, code that holds no program. It
	 * refuses the others.
	 */
	struct result res = { .refusal = last ? ERROR_INPUT : ERROR_RUNTIME,
			      .stages = &stage,
			      .n_stages = last != NULL,
			      .warnings = json_object_get(result, "warnings") };

	*ret = (struct remote_ending){ 0 };
	(void)snprintf(stage.name, sizeof(stage.name), "%s", text_of(last, "name"));
	res.verdict.status = read_status(result);
	res.verdict.exit_code = (int)json_integer_value(json_object_get(result, "exit_code"));
	read_cause(json_object_get(result, "cause"), &res.verdict.cause);
	(void)snprintf(res.commit.error, sizeof(res.commit.error), "%s",
		       text_of(result, "apply_error"));
	read_isolation(json_object_get(result, "isolation"), &res.isolation);
	(void)reduced_text(&res.isolation, ret->reduced, sizeof(ret->reduced));
	ret->exit_code = result_exit_code(&res);
	/* If nothing ran, the text is a problem and not a notice: it is printed also with --quiet. */
	ret->is_problem = res.verdict.status >= STATUS_DENIED;
	if (ret->is_problem)
		(void)snprintf(ret->text, sizeof(ret->text), "%s", res.verdict.cause.detail);
	else
		(void)notice_text(&res, ret->text, sizeof(ret->text));
}
