/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll run --explain`: decision and plans as text, from the very structs that would run. */
#include "client/run.h"

#include "plan/wire.h"

#include <string.h>

enum { EXPLAIN_MAX = 64 << 20 };

static int print_plan(const struct execution *in, const char *title, struct buf *out,
		      struct error *err)
{
	_cleanup_(plan_done) struct plan plan = { 0 };
	struct plan_view view;
	int r;

	plan_init(&plan);
	r = flow_plan(in, &plan, err);
	if (r < 0)
		return r;
	view = plan_as_view(&plan);
	r = buf_printf(out, "\n%s\n", title);
	if (r >= 0)
		r = plan_print(&view, out);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "the plan is too long to print") : 0;
}

static int explain(struct run *run, json_t *root, struct buf *out, struct error *err)
{
	struct execution in;
	int r = flow_open(run, root, err);

	if (r < 0)
		return r;
	if (decision_print(&run->decision, out) < 0)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "the decision is too long to print");
	if (flow_is_compiled(run)) {
		r = flow_describe_build(run, &in, err);
		if (r >= 0)
			r = print_plan(&in, "plan of the compile stage", out, err);
		if (r < 0)
			return r;
	}
	r = flow_describe(run, &in, err);
	return r < 0 ? r : print_plan(&in, "plan", out, err);
}

int atoll_explain(struct atoll *a, const char *request_json, char **text, char **problem)
{
	const struct document doc = { "request", request_json, strlen(request_json) };
	struct run run = { .atoll = a, .output_fd = -EBADF, .full = true };
	struct error err = { 0 };
	_cleanup_buf_ struct buf out = { 0 };
	json_t *root = NULL;
	int r;

	buf_init(&out, EXPLAIN_MAX);
	r = json_parse(&doc, &root, &err);
	if (r >= 0)
		r = explain(&run, root, &out, &err);
	flow_close(&run);
	json_decref(root);
	if (r < 0) {
		*problem = strdup(err.text);
		return r;
	}
	*text = buf_take(&out);
	return 0;
}
