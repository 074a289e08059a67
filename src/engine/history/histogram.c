/* SPDX-License-Identifier: Apache-2.0 */
/* See histogram.h. Written form: pairs of 16-bit index and 64-bit value, little endian, in any order. */
#include "engine/history/histogram.h"

#include <endian.h>
#include <string.h>

enum {
	SLOT_SUM = 256, /* slots below are statuses */
	SLOT_MAX,
	SLOT_CLASSES = 512,
};

struct slot {
	uint16_t index;
	uint64_t value;
} __attribute__((packed));

static unsigned class_of(int64_t us)
{
	uint64_t v = (uint64_t)us;
	unsigned bit;

	if (v < HISTOGRAM_SUB)
		return (unsigned)v;
	bit = 63U - (unsigned)__builtin_clzll(v);
	if (bit >= HISTOGRAM_LAST_BIT)
		return HISTOGRAM_CLASSES - 1;
	return (bit - HISTOGRAM_FIRST_BIT + 1) * HISTOGRAM_SUB +
	       (unsigned)(v >> (bit - HISTOGRAM_FIRST_BIT) & (HISTOGRAM_SUB - 1));
}

/* The middle of a class. */
static int64_t class_value(unsigned class)
{
	unsigned octave = class / HISTOGRAM_SUB;
	int64_t width;

	if (octave == 0)
		return class;
	width = INT64_C(1) << (octave - 1);
	return (HISTOGRAM_SUB + class % HISTOGRAM_SUB) * width + width / 2;
}

void run_histogram_add(struct run_histogram *t, enum run_status status, int64_t duration_us)
{
	t->ended[status]++;
	if (duration_us < 0)
		return;
	t->sum_us += duration_us;
	t->max_us = MAX(t->max_us, duration_us);
	t->classes[class_of(duration_us)]++;
}

static int put_class(struct buf *b, unsigned index, int64_t value)
{
	struct slot s = { htole16((uint16_t)index), htole64((uint64_t)value) };

	return value == 0 ? 0 : buf_append(b, &s, sizeof(s));
}

int run_histogram_write(const struct run_histogram *t, struct buf *ret)
{
	int r = put_class(ret, SLOT_SUM, t->sum_us);

	if (r >= 0)
		r = put_class(ret, SLOT_MAX, t->max_us);
	for (unsigned i = 0; i < _STATUS_MAX && r >= 0; i++)
		r = put_class(ret, i, t->ended[i]);
	for (unsigned i = 0; i < HISTOGRAM_CLASSES && r >= 0; i++)
		r = put_class(ret, SLOT_CLASSES + i, t->classes[i]);
	return r;
}

static bool take_class(struct run_histogram *t, unsigned index, int64_t value)
{
	if (value < 0)
		return false;
	if (index < _STATUS_MAX)
		t->ended[index] += value;
	else if (index == SLOT_SUM)
		t->sum_us += value;
	else if (index == SLOT_MAX)
		t->max_us = MAX(t->max_us, value);
	else if (index >= SLOT_CLASSES && index < SLOT_CLASSES + HISTOGRAM_CLASSES)
		t->classes[index - SLOT_CLASSES] += (uint32_t)value;
	else
		return false;
	return true;
}

int run_histogram_read(struct run_histogram *t, const void *data, size_t len)
{
	const char *at = data;
	struct slot s;

	if (len % sizeof(s) != 0)
		return -EBADMSG;
	for (; len > 0; at += sizeof(s), len -= sizeof(s)) {
		(void)memcpy(&s, at, sizeof(s));
		if (!take_class(t, le16toh(s.index), (int64_t)le64toh(s.value)))
			return -EBADMSG;
	}
	return 0;
}

static int64_t measured(const struct run_histogram *t)
{
	int64_t n = 0;

	for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++)
		n += t->classes[i];
	return n;
}

int64_t run_histogram_percentile_us(const struct run_histogram *t, double share)
{
	int64_t n = measured(t), rank = (int64_t)(share * (double)n), seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++) {
		seen += t->classes[i];
		if (seen > rank || (seen == n && n > 0))
			return MIN(class_value(i), t->max_us);
	}
	return -1;
}

static json_t *seconds(int64_t us)
{
	return us < 0 ? json_null() : json_real((double)us / 1e6);
}

static json_t *latency_to_json(const struct run_histogram *t)
{
	int64_t n = measured(t);

	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "mean", seconds(n > 0 ? t->sum_us / n : -1),
			 "p50", seconds(run_histogram_percentile_us(t, 0.5)), "p90",
			 seconds(run_histogram_percentile_us(t, 0.9)), "p99",
			 seconds(run_histogram_percentile_us(t, 0.99)), "max",
			 seconds(n > 0 ? t->max_us : -1));
}

static json_t *rate(int64_t part, int64_t total)
{
	return total > 0 ? json_real((double)part / (double)total) : json_null();
}

json_t *run_histogram_to_json(const struct run_histogram *t)
{
	json_t *statuses = json_object();
	int64_t total = 0, good = t->ended[STATUS_SUCCESS], late = t->ended[STATUS_TIMEOUT];

	for (int i = 0; i < _STATUS_MAX; i++) {
		total += t->ended[i];
		(void)json_object_set_new(statuses, status_name((enum run_status)i),
					  json_integer(t->ended[i]));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "total", (json_int_t)total, "by_status",
			 statuses, "success_rate", rate(good, total), "failure_rate",
			 rate(total - good, total), "timeout_rate", rate(late, total), "latency",
			 latency_to_json(t));
}
