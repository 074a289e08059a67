/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll run --explain`: decision and plans, from the same structs that would run; as text, or (with --json) as
 * {"decision": {FIELD: {"value", "rule"}}, "plans": [{"name", "operations": [{"phase", "name", "text"}]}]}.
 */
#include "run/run.h"

#include "plan/wire.h"
#include "spec/knob.h"
#include "spec/utf8-json.h"

#include <string.h>

enum { EXPLAIN_MAX = 64 << 20 };

/* The destination: one of the two. */
struct explain_sink {
	struct buf *text;
	json_t *tree;
};

/* --- the decision --- */

static int add_explain_row(void *data, const struct decision_row *row)
{
	json_t *value = row->knob    ? knob_to_json(row->knob, row->number)
			: row->truth ? json_boolean(*row->truth)
				     : json_string(row->value);
	json_t *entry = json_pack("{s:o, s:s}", "value", value, "rule", row->rule);

	return json_object_set_new(data, row->field, entry) < 0 ? -ENOMEM : 0;
}

json_t *explain_rows(const struct decision *d)
{
	json_t *rows = json_object();

	if (rows && decision_each(d, add_explain_row, rows) == 0)
		return rows;
	json_decref(rows);
	return NULL;
}

static int explain_decision(const struct decision *d, const struct explain_sink *to,
			    struct error *err)
{
	json_t *rows;

	if (to->text)
		return decision_print(d, to->text) < 0 ? error_oom(err) : 0;
	rows = explain_rows(d);
	return json_object_set_new(to->tree, "decision", rows) < 0 ? error_oom(err) : 0;
}

/* --- plans --- */

static json_t *op_to_json(const struct plan_view *v, const struct op *op)
{
	static const char *const phases[] = {
		[PHASE_PREPARE] = "prepare", [PHASE_LAUNCH] = "launch"
	};
	const struct op_info *info = &op_table[op->kind];
	_cleanup_buf_ struct buf words = { .max = EXPLAIN_MAX };
	json_t *text;

	if (plan_print_op(v, op, &words) < 0)
		return NULL;
	/* Long words are cut, possibly inside a character. */
	text = words.len > 0 ? utf8_to_json(words.data + 1, words.len - 1, NULL) : json_string("");
	return json_pack("{s:s, s:s, s:o}", "phase", phases[info->phase], "name", info->name,
			 "text", text);
}

static int add_plan(const struct plan_view *v, const char *name, json_t *tree)
{
	json_t *ops = json_array(),
	       *plan = json_pack("{s:s, s:o}", "name", name, "operations", ops);

	if (!plan || json_array_append_new(json_object_get(tree, "plans"), plan) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->n_ops; i++)
		if (json_array_append_new(ops, op_to_json(v, &v->ops[i])) < 0)
			return -ENOMEM;
	return 0;
}

static int print_plan(const struct plan_view *v, const char *name, struct buf *out)
{
	bool compiles = strcmp(name, "compile") == 0;
	int r = buf_puts(out, compiles ? "\nplan of the compile stage\n" : "\nplan\n");

	return r < 0 ? r : plan_print(v, out);
}

static int explain_plan(const struct sandbox_spec *in, const char *name,
			const struct explain_sink *to, struct error *err)
{
	_cleanup_(plan_done) struct plan plan = { 0 };
	struct plan_view view;
	int r;

	plan_init(&plan);
	r = flow_plan(in, &plan, err);
	if (r < 0)
		return r;
	view = plan_as_view(&plan);
	r = to->text ? print_plan(&view, name, to->text) : add_plan(&view, name, to->tree);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "the plan is too long to print") : 0;
}

static int explain_build(struct local_run *run, void *data, struct error *err)
{
	struct sandbox_spec in;
	int r = flow_describe_build(run, &in, err);

	if (r >= 0)
		r = explain_plan(&in, "compile", data, err);
	return r < 0 ? r : 1;
}

static int explain_run(struct local_run *run, json_t *root, struct explain_sink *to,
		       struct error *err)
{
	struct sandbox_spec in;
	int r = flow_open(run, root, err);

	if (r < 0)
		return r;
	r = explain_decision(&run->decision, to, err);
	if (r < 0)
		return r;
	r = flow_is_compiled(run) ? explain_build(run, to, err)
				  : flow_for_builds(run, explain_build, to, err);
	if (r < 0)
		return r;
	r = flow_describe(run, &in, err);
	return r < 0 ? r : explain_plan(&in, "run", to, err);
}

static int explain_to(struct atoll *a, const char *request_json, struct explain_sink *to,
		      char **problem)
{
	const struct document doc = { "request", request_json, strlen(request_json) };
	struct local_run run = { .atoll = a, .output_fd = -EBADF, .full = true };
	struct error err = { 0 };
	json_t *root = NULL;
	int r = json_parse(&doc, &root, &err);

	if (r >= 0)
		r = explain_run(&run, root, to, &err);
	flow_close(&run);
	json_decref(root);
	if (r < 0)
		*problem = strdup(err.text);
	return MIN(r, 0);
}

int atoll_explain(struct atoll *a, const char *request_json, char **text, char **problem)
{
	_cleanup_buf_ struct buf out = { .max = EXPLAIN_MAX };
	struct explain_sink to = { .text = &out };
	int r = explain_to(a, request_json, &to, problem);

	if (r == 0)
		*text = buf_take(&out);
	return r;
}

int atoll_explain_json(struct atoll *a, const char *request_json, char **json, char **problem)
{
	struct explain_sink to = { .tree = json_pack("{s:[]}", "plans") };
	char *text;
	int r = to.tree ? explain_to(a, request_json, &to, problem) : -ENOMEM;

	if (r == 0) {
		text = json_dumps(to.tree, JSON_COMPACT);
		if (text)
			*json = text;
		else
			r = -ENOMEM;
	}
	json_decref(to.tree);
	return r;
}
