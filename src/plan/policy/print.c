/* SPDX-License-Identifier: Apache-2.0 */
/* The decision row by row: each field, its value, and the rule behind it; and the table for --explain. */
#include "plan/policy/policy.h"

#include <stdio.h>

#include "spec/knob.h"
#include "spec/read.h"

struct decision_sink {
	int (*fn)(void *data, const struct decision_row *row);
	void *data;
	int r; /* the first answer of fn that is not 0: rows behind it are not given */
};

static void row_give(struct decision_sink *to, const struct decision_row *row)
{
	if (to->r == 0)
		to->r = to->fn(to->data, row);
}

static void row_give_limit(struct decision_sink *to, const char *field, const struct knob *k,
			   int64_t number, const char *rule)
{
	char value[32];

	knob_format(k, number, value, sizeof(value));
	row_give(to, &(struct decision_row){ .field = field,
					     .value = value,
					     .rule = rule,
					     .knob = k,
					     .number = number });
}

static void rows_give_limits(struct decision_sink *to, const struct decision *d)
{
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		const int64_t number = knob_get(k, &d->limits);
		const char *rule = "policy default";
		char field[64];

		if (d->request->limits_set & knob_bit(k))
			rule = "request";
		else if (number != knob_get(k, &d->policy->defaults))
			rule = "host has no more";
		(void)snprintf(field, sizeof(field), "limits.%s", k->key);
		row_give_limit(to, field, k, number, rule);
	}
}

/* Only limits that a stage sets itself; the others are as above. */
struct stage_row {
	const char *where, *name;
	const struct limits *limits;
	uint32_t set;
	const char *rule;
};

static void rows_give_stage(struct decision_sink *to, const struct decision *d,
			    const struct stage_row *stage)
{
	struct limits limits;

	decision_stage_limits(d, stage->limits, stage->set, &limits);
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		const int64_t number = knob_get(k, &limits);
		bool cut = number != knob_get(k, stage->limits);
		char field[128], rule[64];

		if (!(stage->set & knob_bit(k)))
			continue;
		(void)snprintf(field, sizeof(field), "%s%s.limits.%s", stage->where, stage->name,
			       k->key);
		(void)snprintf(rule, sizeof(rule), "%s%s", stage->rule,
			       cut ? ", cut to the ceiling" : "");
		row_give_limit(to, field, k, number, rule);
	}
}

static void rows_give_head(struct decision_sink *to, const struct decision *d)
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

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		row_give(to, &rows[i]);
}

int decision_each(const struct decision *d, int (*fn)(void *data, const struct decision_row *row),
		  void *data)
{
	struct decision_sink to = { fn, data, 0 };
	const struct request *req = d->request;
	const struct language *lang = d->language;

	rows_give_head(&to, d);
	rows_give_limits(&to, d);
	if (lang && lang->compile.argv[0])
		rows_give_stage(&to, d,
				&(struct stage_row){ "", "compile", &lang->compile.limits,
						     lang->compile.limits_set, "language" });
	/* A stage of the request may be named `compile`, too. */
	for (size_t i = 0; i < req->n_stages; i++)
		rows_give_stage(&to, d,
				&(struct stage_row){ "stages.", req->stages[i].name,
						     &req->stages[i].limits,
						     req->stages[i].limits_set, "request" });
	for (unsigned i = 0; i < _LAYER_MAX; i++) {
		const uint32_t bit = UINT32_C(1) << i;
		char field[64];

		(void)snprintf(field, sizeof(field), "layer.%s", layer_name((enum layer)i));
		row_give(&to,
			 &(struct decision_row){
				 .field = field,
				 .value = d->missing & bit ? "missing" : "holds",
				 .rule = d->policy->required & bit ? "required by policy" : "host",
			 });
	}
	return to.r;
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
