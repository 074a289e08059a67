/* SPDX-License-Identifier: Apache-2.0 */
/* The decision as a table for people: each field, its value, and the rule that gave it. */
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

#include "spec/knob.h"
#include "spec/read.h"

static int print_row(struct buf *out, const char *field, const char *value, const char *rule)
{
	return buf_printf(out, "  %-24s %-20s %s\n", field, value, rule);
}

static const char *limit_rule(const struct decision *d, const struct knob *k)
{
	if (d->request->limits_set & knob_bit(k))
		return "request";
	if (knob_get(k, &d->limits) != knob_get(k, &d->policy->defaults))
		return "host has no more";
	return "policy default";
}

static int print_limits(const struct decision *d, struct buf *out)
{
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		char field[64], value[32];
		int r;

		(void)snprintf(field, sizeof(field), "limits.%s", k->key);
		knob_format(k, knob_get(k, &d->limits), value, sizeof(value));
		r = print_row(out, field, value, limit_rule(d, k));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Only what a stage says itself; the rest is as above. */
struct stage_row {
	const char *name;
	const struct limits *limits;
	uint32_t set;
	const char *rule;
};

static int print_stage(const struct decision *d, const struct stage_row *stage, struct buf *out)
{
	struct limits limits;

	decision_stage_limits(d, stage->limits, stage->set, &limits);
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		bool cut = knob_get(k, &limits) != knob_get(k, stage->limits);
		char field[96], value[32], rule[64];
		int r;

		if (!(stage->set & knob_bit(k)))
			continue;
		(void)snprintf(field, sizeof(field), "%s.limits.%s", stage->name, k->key);
		(void)snprintf(rule, sizeof(rule), "%s%s", stage->rule,
			       cut ? ", cut to the ceiling" : "");
		knob_format(k, knob_get(k, &limits), value, sizeof(value));
		r = print_row(out, field, value, rule);
		if (r < 0)
			return r;
	}
	return 0;
}

static int print_stages(const struct decision *d, struct buf *out)
{
	const struct request *req = d->request;
	int r = 0;

	if (d->language && d->language->compile_argv[0]) {
		struct stage_row row = { "compile", &d->language->compile_limits,
					 d->language->compile_limits_set, "language" };

		r = print_stage(d, &row, out);
	}
	for (size_t i = 0; r == 0 && i < req->n_stages; i++) {
		struct stage_row row = { req->stages[i].name, &req->stages[i].limits,
					 req->stages[i].limits_set, "request" };

		r = print_stage(d, &row, out);
	}
	return r;
}

static int print_layers(const struct decision *d, struct buf *out)
{
	for (unsigned i = 0; i < _LAYER_MAX; i++) {
		uint32_t bit = UINT32_C(1) << i;
		char field[64];
		int r;

		(void)snprintf(field, sizeof(field), "layer.%s", layer_name((enum layer)i));
		r = print_row(out, field, d->missing & bit ? "missing" : "holds",
			      d->policy->required & bit ? "required by policy" : "host");
		if (r < 0)
			return r;
	}
	return 0;
}

static int print_head(const struct decision *d, struct buf *out)
{
	const struct request *req = d->request;
	static const char *const networks[] = { [NETWORK_NONE] = "none",
						[NETWORK_LOOPBACK] = "loopback",
						[NETWORK_ALLOW] = "allow",
						[NETWORK_HOST] = "host" };
	const struct {
		const char *field, *value, *rule;
	} rows[] = {
		{ "policy", d->policy->name, req->policy ? "request" : "default" },
		{ "language", d->language ? d->language->name : "none",
		  req->language ? "request" : "found" },
		{ "root", req->image ? req->image : "host, read-only",
		  req->image ? "request" : "policy" },
		{ "network", networks[d->network], req->network_text ? "request" : "default" },
		{ "read_only", d->read_only ? "yes" : "no",
		  d->policy->read_only ? "policy"
		  : req->read_only     ? "request"
				       : "default" },
		{ "tty", d->tty ? "yes" : "no", d->tty ? "request" : "default" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = print_row(out, rows[i].field, quote_text(rows[i].value).text, rows[i].rule);

		if (r < 0)
			return r;
	}
	return 0;
}

int decision_print(const struct decision *d, struct buf *out)
{
	static int (*const parts[])(const struct decision *,
				    struct buf *) = { print_head, print_limits, print_stages,
						      print_layers };
	int r = buf_puts(out, "decision\n");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = parts[i](d, out);
	return r;
}
