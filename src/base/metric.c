/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See metric.h. The first error is kept and later calls do nothing, so only the end of a page checks for
 * errors.
 */
#include "base/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void put_metric_text(struct metric_text *m, const char *text)
{
	if (m->r == 0)
		m->r = buf_puts(m->out, text);
}

void metric_begin(struct metric_text *m, const char *name, enum metric_type type, const char *help)
{
	static const char *const types[] = { [METRIC_COUNTER] = "counter",
					     [METRIC_GAUGE] = "gauge",
					     [METRIC_HISTOGRAM] = "histogram" };

	m->name = name;
	if (m->r == 0)
		m->r = buf_printf(m->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
				  types[type]);
}

static void put_label_value(struct metric_text *m, const char *value)
{
	for (; m->r == 0 && *value; value++) {
		if (*value == '\n')
			put_metric_text(m, "\\n");
		else if (*value == '"' || *value == '\\')
			m->r = buf_printf(m->out, "\\%c", *value);
		else
			m->r = buf_append(m->out, value, 1);
	}
}

/* {a="x",b="y"}; further is one more label, or NULL. */
static void put_labels(struct metric_text *m, const struct metric_label *labels,
		       const struct metric_label *further)
{
	const char *before = "{";

	for (; labels && labels->name; labels++) {
		put_metric_text(m, before);
		put_metric_text(m, labels->name);
		put_metric_text(m, "=\"");
		put_label_value(m, labels->value ? labels->value : "");
		put_metric_text(m, "\"");
		before = ",";
	}
	if (further && m->r == 0)
		m->r = buf_printf(m->out, "%s%s=\"%s\"", before, further->name, further->value);
	if (further || *before == ',')
		put_metric_text(m, "}");
}

static void put_number(struct metric_text *m, double value)
{
	if (m->r < 0)
		return;
	if (fabs(value) < 9e15 && value == (double)(int64_t)value)
		m->r = buf_printf(m->out, " %" PRId64 "\n", (int64_t)value);
	else
		m->r = buf_printf(m->out, " %.15g\n", value);
}

void metric_sample(struct metric_text *m, const struct metric_label *labels, double value)
{
	put_metric_text(m, m->name);
	put_labels(m, labels, NULL);
	put_number(m, value);
}

void metric_rows_put(struct metric_text *m, const struct metric_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		metric_begin(m, rows[i].name, rows[i].type, rows[i].help);
		metric_sample(m, NULL, rows[i].value);
	}
}

void metric_histogram_put(struct metric_text *m, const struct metric_label *labels,
			  const struct metric_histogram *h)
{
	uint64_t total = 0;

	for (size_t i = 0; i <= h->n_bounds; i++) {
		char bound[32] = "+Inf";
		const struct metric_label le = { "le", bound };

		if (i < h->n_bounds)
			(void)snprintf(bound, sizeof(bound), "%g", h->bounds[i]);
		total += h->counts[i];
		put_metric_text(m, m->name);
		put_metric_text(m, "_bucket");
		put_labels(m, labels, &le);
		put_number(m, (double)total);
	}
	put_metric_text(m, m->name);
	put_metric_text(m, "_sum");
	put_labels(m, labels, NULL);
	put_number(m, h->sum);
	put_metric_text(m, m->name);
	put_metric_text(m, "_count");
	put_labels(m, labels, NULL);
	put_number(m, (double)total);
}
