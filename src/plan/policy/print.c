/* SPDX-License-Identifier: Apache-2.0 */
/* The decision row by row: each field, its value, and the rule behind it; and the table for --explain. */
#include "plan/policy/policy.h"

#include <stdio.h>
#include <string.h>

#include "spec/knob.h"
#include "spec/read.h"

struct decision_sink {
	int (*fn)(void *data, const struct decision_row *row);
	void *data;
};

static int row_give_limit(const struct decision_sink *to, const struct knob *k, int64_t number,
			  const struct decision_row *names)
{
	struct decision_row row = *names;
	char value[32];

	knob_format(k, number, value, sizeof(value));
	row.value = value;
	row.knob = k;
	row.number = number;
	return to->fn(to->data, &row);
}

static const char *row_limit_rule(const struct decision *d, const struct knob *k)
{
	if (d->request->limits_set & knob_bit(k))
		return "request";
	if (knob_get(k, &d->limits) != knob_get(k, &d->policy->defaults))
		return "host has no more";
	return "policy default";
}

static int rows_give_limits(const struct decision *d, const struct decision_sink *to)
{
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		struct decision_row row = { .rule = row_limit_rule(d, k) };
		char field[64];
		int r;

		(void)snprintf(field, sizeof(field), "limits.%s", k->key);
		row.field = field;
		r = row_give_limit(to, k, knob_get(k, &d->limits), &row);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Only limits that a stage sets itself; the others are as above. */
struct stage_row {
	const char *where, *name;
	const struct limits *limits;
	uint32_t set;
	const char *rule;
};

static int rows_give_stage(const struct decision *d, const struct stage_row *stage,
			   const struct decision_sink *to)
{
	struct limits limits;

	decision_stage_limits(d, stage->limits, stage->set, &limits);
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		bool cut = knob_get(k, &limits) != knob_get(k, stage->limits);
		char field[128], rule[64];
		const struct decision_row row = { .field = field, .rule = rule };
		int r;

		if (!(stage->set & knob_bit(k)))
			continue;
		(void)snprintf(field, sizeof(field), "%s%s.limits.%s", stage->where, stage->name,
			       k->key);
		(void)snprintf(rule, sizeof(rule), "%s%s", stage->rule,
			       cut ? ", cut to the ceiling" : "");
		r = row_give_limit(to, k, knob_get(k, &limits), &row);
		if (r < 0)
			return r;
	}
	return 0;
}

static int rows_give_stages(const struct decision *d, const struct decision_sink *to)
{
	const struct request *req = d->request;
	int r = 0;

	if (d->language && d->language->compile_argv[0]) {
		struct stage_row row = { "", "compile", &d->language->compile_limits,
					 d->language->compile_limits_set, "language" };

		r = rows_give_stage(d, &row, to);
	}
	for (size_t i = 0; r == 0 && i < req->n_stages; i++) {
		/* A stage of the request may be named `compile`, too. */
		struct stage_row row = { "stages.", req->stages[i].name, &req->stages[i].limits,
					 req->stages[i].limits_set, "request" };

		r = rows_give_stage(d, &row, to);
	}
	return r;
}

static int rows_give_layers(const struct decision *d, const struct decision_sink *to)
{
	for (unsigned i = 0; i < _LAYER_MAX; i++) {
		uint32_t bit = UINT32_C(1) << i;
		char field[64];
		const struct decision_row row = {
			.field = field,
			.value = d->missing & bit ? "missing" : "holds",
			.rule = d->policy->required & bit ? "required by policy" : "host",
		};
		int r;

		(void)snprintf(field, sizeof(field), "layer.%s", layer_name((enum layer)i));
		r = to->fn(to->data, &row);
		if (r < 0)
			return r;
	}
	return 0;
}

static int rows_give_head(const struct decision *d, const struct decision_sink *to)
{
	const struct request *req = d->request;
	static const char *const networks[] = { [NETWORK_NONE] = "none",
						[NETWORK_OFF] = "off",
						[NETWORK_ALLOW] = "allow",
						[NETWORK_HOST] = "host" };
	static const char *const preloads[] = { [PRELOAD_TIERS] = "the language's tiers",
						[PRELOAD_NAMED] = "the policy's list",
						[PRELOAD_ANY] = "any module" };
	const struct decision_row rows[] = {
		{ .field = "policy",
		  .value = d->policy->name,
		  .rule = req->policy ? "request" : "default" },
		{ .field = "language",
		  .value = d->language ? d->language->id : "none",
		  .rule = req->language ? "request" : "found" },
		{ .field = "root",
		  .value = req->image	      ? req->image
			   : d->writable_root ? "host, writable in a layer"
					      : "host, read-only",
		  .rule = req->image ? "request" : "policy" },
		{ .field = "network",
		  .value = networks[d->network],
		  .rule = d->policy->network == NETWORK_OFF ? "policy"
			  : req->network_text		    ? "request"
							    : "default" },
		{ .field = "read_only",
		  .value = d->read_only ? "yes" : "no",
		  .rule = d->policy->read_only ? "policy"
			  : req->read_only     ? "request"
					       : "default",
		  .truth = &d->read_only },
		{ .field = "writable_root",
		  .value = d->writable_root ? "yes" : "no",
		  .rule = d->writable_root ? "request" : "default",
		  .truth = &d->writable_root },
		{ .field = "tty",
		  .value = d->tty ? "yes" : "no",
		  .rule = d->tty ? "request" : "default",
		  .truth = &d->tty },
		{ .field = "preload", .value = preloads[d->policy->preload], .rule = "policy" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = to->fn(to->data, &rows[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

int decision_each(const struct decision *d, int (*fn)(void *data, const struct decision_row *row),
		  void *data)
{
	static int (*const parts[])(const struct decision *, const struct decision_sink *) = {
		rows_give_head, rows_give_limits, rows_give_stages, rows_give_layers
	};
	const struct decision_sink to = { fn, data };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = parts[i](d, &to);
	return r;
}

static int row_print(void *data, const struct decision_row *row)
{
	return buf_printf(data, "  %-24s %-20s %s\n", row->field, quote_text(row->value).text,
			  row->rule);
}

int decision_print(const struct decision *d, struct buf *out)
{
	int r = buf_puts(out, "decision\n");

	return r < 0 ? r : decision_each(d, row_print, out);
}
