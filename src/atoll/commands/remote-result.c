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

static void read_verdict(const json_t *result, struct verdict *ret)
{
	const json_t *cause = json_object_get(result, "cause");
	const struct knob *k = knob_find(text_of(cause, "limit_key"));

	ret->status = status_from_name(text_of(result, "status"));
	ret->exit_code = (int)json_integer_value(json_object_get(result, "exit_code"));
	ret->cause.kind = CAUSE_INTERNAL;
	for (int i = 0; i < _CAUSE_MAX; i++)
		if (strcmp(cause_name((enum cause_kind)i), text_of(cause, "kind")) == 0)
			ret->cause.kind = (enum cause_kind)i;
	(void)snprintf(ret->cause.detail, sizeof(ret->cause.detail), "%s",
		       text_of(cause, "detail"));
	ret->cause.limit_key = k ? k->key : NULL;
	ret->cause.suggest = -1;
	if (k &&
	    knob_parse_json(k, json_object_get(cause, "suggest"), &ret->cause.suggest, NULL) < 0)
		ret->cause.suggest = -1;
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
	read_verdict(result, &res.verdict);
	(void)snprintf(res.commit.error, sizeof(res.commit.error), "%s",
		       text_of(result, "apply_error"));
	res.isolation.tier = json_string_value(member_of(result, "isolation.tier"));
	/* One place is for the end of the list. */
	for (size_t i = 0; i + 1 < ARRAY_SIZE(res.isolation.missing); i++)
		res.isolation.missing[i] = json_string_value(
			json_array_get(member_of(result, "isolation.missing"), i));
	(void)reduced_text(&res.isolation, ret->reduced, sizeof(ret->reduced));
	ret->exit_code = result_exit_code(&res);
	/* If nothing ran, the text is a problem and not a notice: it is printed also with --quiet. */
	ret->is_problem = res.verdict.status >= STATUS_DENIED;
	if (ret->is_problem)
		(void)snprintf(ret->text, sizeof(ret->text), "%s", res.verdict.cause.detail);
	else
		(void)notice_text(&res, ret->text, sizeof(ret->text));
}
