/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Statistics are sums of tallies, of minutes or of hours: what is read depends on the length of the
 * window, not on how much ran in it. A tally's written form: pairs of 16-bit index and 64-bit value, little endian, in any order.
 */
#include "engine/history/histogram.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/history/store.h"

enum {
	SLOT_SUM = 256, /* slots below are statuses */
	SLOT_MAX,
	SLOT_CLASSES = 512,
};

struct slot {
	uint16_t index;
	uint64_t value;
} __attribute__((packed));

static unsigned histogram_class(int64_t us)
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
static int64_t histogram_class_value(unsigned class)
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
	t->classes[histogram_class(duration_us)]++;
}

static int histogram_put(struct buf *b, unsigned index, int64_t value)
{
	struct slot s = { htole16((uint16_t)index), htole64((uint64_t)value) };

	return value == 0 ? 0 : buf_append(b, &s, sizeof(s));
}

int run_histogram_write(const struct run_histogram *t, struct buf *ret)
{
	int r = histogram_put(ret, SLOT_SUM, t->sum_us);

	if (r >= 0)
		r = histogram_put(ret, SLOT_MAX, t->max_us);
	for (unsigned i = 0; i < _STATUS_MAX && r >= 0; i++)
		r = histogram_put(ret, i, t->ended[i]);
	for (unsigned i = 0; i < HISTOGRAM_CLASSES && r >= 0; i++)
		r = histogram_put(ret, SLOT_CLASSES + i, t->classes[i]);
	return r;
}

static bool histogram_take(struct run_histogram *t, unsigned index, int64_t value)
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
		if (!histogram_take(t, le16toh(s.index), (int64_t)le64toh(s.value)))
			return -EBADMSG;
	}
	return 0;
}

static int64_t histogram_measured(const struct run_histogram *t)
{
	int64_t n = 0;

	for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++)
		n += t->classes[i];
	return n;
}

int64_t run_histogram_percentile_us(const struct run_histogram *t, double share)
{
	int64_t n = histogram_measured(t), rank = (int64_t)(share * (double)n), seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++) {
		seen += t->classes[i];
		if (seen > rank || (seen == n && n > 0))
			return MIN(histogram_class_value(i), t->max_us);
	}
	return -1;
}

static json_t *histogram_seconds(int64_t us)
{
	return us < 0 ? json_null() : json_real((double)us / 1e6);
}

static json_t *histogram_rate(int64_t part, int64_t total)
{
	return total > 0 ? json_real((double)part / (double)total) : json_null();
}

json_t *run_histogram_to_json(const struct run_histogram *t)
{
	json_t *statuses = json_object();
	const int64_t n = histogram_measured(t);
	int64_t total = 0, good = t->ended[STATUS_SUCCESS], late = t->ended[STATUS_TIMEOUT];

	for (int i = 0; i < _STATUS_MAX; i++) {
		total += t->ended[i];
		(void)json_object_set_new(statuses, status_name((enum run_status)i),
					  json_integer(t->ended[i]));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o}}", "total",
			 (json_int_t)total, "by_status", statuses, "success_rate",
			 histogram_rate(good, total), "failure_rate",
			 histogram_rate(total - good, total), "timeout_rate",
			 histogram_rate(late, total), "latency", "mean",
			 histogram_seconds(n > 0 ? t->sum_us / n : -1), "p50",
			 histogram_seconds(run_histogram_percentile_us(t, 0.5)), "p90",
			 histogram_seconds(run_histogram_percentile_us(t, 0.9)), "p99",
			 histogram_seconds(run_histogram_percentile_us(t, 0.99)), "max",
			 histogram_seconds(n > 0 ? t->max_us : -1));
}

/* --- statistics --- */

enum {
	NAMES_MAX = 256,      /* languages and labels in one answer */
	TALLIES_READ = 20000, /* the newest; older ones are left out and `since` says so */
	COUNT_FIRST = 20480,  /* ended executions that may be counted before the answer, … */
	COUNT_STEP = 512,     /* … so many at a time */
	PIECE_BUCKETS = 8,    /* in the first piece; then as many as have so many tallies: */
	PIECE_TALLIES = 1000,
};

struct sum {
	enum sum_kind kind;
	char *name;
	struct run_histogram tally;
};

struct sums {
	struct sum *list[NAMES_MAX];
	size_t n, found;  /* found: the last */
	int64_t oldest_s; /* of what was read */
	bool cut;	  /* there was more */
};

static void sums_done(struct sums *all)
{
	for (size_t i = 0; i < all->n; i++) {
		free(all->list[i]->name);
		free(all->list[i]);
	}
}

/* NULL: there are too many names, or no memory. */
static struct sum *sums_find(struct sums *all, enum sum_kind kind, const char *name)
{
	struct sum *sum;

	/* The tallies of each bucket come in the same order: the next one is mostly the one behind the last. */
	for (size_t i = 0; i < all->n; i++) {
		const size_t at = (all->found + 1 + i) % all->n;

		if (all->list[at]->kind == kind && strcmp(all->list[at]->name, name) == 0) {
			all->found = at;
			return all->list[at];
		}
	}
	if (all->n == NAMES_MAX)
		return NULL;
	sum = calloc(1, sizeof(*sum));
	if (!sum)
		return NULL;
	sum->kind = kind;
	sum->name = strdup(name);
	if (!sum->name) {
		free(sum);
		return NULL;
	}
	all->list[all->n++] = sum;
	return sum;
}

struct time_range {
	int64_t span, from, to; /* s; whole buckets, `to` not included */
};

static struct time_range stats_range(const struct history_window *w)
{
	int64_t now = clock_realtime_ns() / NS_PER_SEC;
	int64_t since = w->since_ns / NS_PER_SEC;
	int64_t until = w->until_ns > 0 ? (w->until_ns + NS_PER_SEC - 1) / NS_PER_SEC : now + 1;
	struct time_range r = { .span = since >= now - 6 * 3600 ? SPAN_MINUTE : SPAN_HOUR };

	r.from = since - since % r.span;
	r.to = (until + r.span - 1) / r.span * r.span;
	return r;
}

/* Adds the tallies of [from, to); *n counts them. */
static int sums_read_piece(struct history *h, const char *caller, const struct time_range *piece,
			   struct sums *all, int *n)
{
	int r = 0;
	_cleanup_stmt_ sqlite3_stmt *s = store_ask(
		h, &r, caller ? STMT_TALLY_SUM_OF : STMT_TALLY_SUM,
		VALUES(V_NUMBER(piece->span), V_NUMBER(piece->from), V_NUMBER(piece->to),
		       V_TEXT(caller)));

	while (s && !all->cut && (r = store_step(h, s)) > 0) {
		struct sum *sum = sums_find(all, (enum sum_kind)sqlite3_column_int(s, 0),
					    (const char *)sqlite3_column_text(s, 1));

		if (sum)
			(void)run_histogram_read(&sum->tally, sqlite3_column_blob(s, 2),
						 (size_t)sqlite3_column_bytes(s, 2));
		all->oldest_s = sqlite3_column_int64(s, 3);
		all->cut = ++*n == TALLIES_READ;
	}
	return MIN(r, 0);
}

/* The newest first, some thousand tallies at a time: how many a bucket has is only known when they are read. */
static int sums_read(struct history *h, const struct history_window *window,
		     const struct time_range *range, struct sums *all)
{
	struct time_range piece = { .span = range->span, .to = range->to };
	int64_t width_s = PIECE_BUCKETS * range->span;
	int n = 0, before = 0, r = 0;

	for (; r >= 0 && piece.to > range->from && !all->cut; piece.to = piece.from) {
		if (window->pause && n > before && !window->pause(window->pause_data))
			break;
		piece.from = piece.to - range->from > width_s ? piece.to - width_s : range->from;
		before = n;
		r = sums_read_piece(h, window->caller, &piece, all, &n);
		if (n - before < PIECE_TALLIES / 2)
			width_s *= 2;
		else if (n - before > PIECE_TALLIES)
			width_s = MAX(width_s / 2 / range->span, (int64_t)1) * range->span;
	}
	return r;
}

static json_t *stats_instant(int64_t s)
{
	char text[32];

	clock_format_utc(s * NS_PER_SEC, text, sizeof(text));
	return json_string(text);
}

/* With a filter only what it names is shown: how the rest shares in it is not known. */
static json_t *sums_to_json(const struct sums *all, const struct time_range *range,
			    const struct history_window *w)
{
	static const struct run_histogram none;
	const bool filtered = w->language || w->label;
	json_t *root, *groups[3] = { NULL, json_object(), json_object() };
	const struct run_histogram *total = &none;
	int64_t since = all->cut || range->from == 0 ? all->oldest_s : range->from;

	for (size_t i = 0; i < all->n; i++) {
		const struct sum *sum = all->list[i];
		const char *of = w->language ? w->language : w->label ? w->label : "";
		const enum sum_kind kind = w->language ? HISTOGRAM_LANGUAGE
					   : w->label  ? HISTOGRAM_LABEL
						       : HISTOGRAM_ALL;

		if (sum->kind == kind && strcmp(sum->name, of) == 0)
			total = &sum->tally;
		else if (filtered)
			continue;
		if (sum->kind == HISTOGRAM_LANGUAGE || sum->kind == HISTOGRAM_LABEL)
			(void)json_object_set_new(groups[sum->kind], sum->name,
						  run_histogram_to_json(&sum->tally));
	}
	root = run_histogram_to_json(total);
	if (json_object_set_new(root, "by_language", groups[HISTOGRAM_LANGUAGE]) < 0 ||
	    json_object_set_new(root, "by_label", groups[HISTOGRAM_LABEL]) < 0 ||
	    json_object_set_new(root, "since", stats_instant(since)) < 0 ||
	    json_object_set_new(root, "until", stats_instant(range->to)) < 0) {
		json_decref(root);
		return NULL;
	}
	return root;
}

int history_stats(struct history *h, const struct history_window *window, json_t **ret,
		  struct error *err)
{
	_cleanup_(sums_done) struct sums all = { .n = 0 };
	struct time_range range = stats_range(window);
	json_t *root;
	int r = arrivals_settle(h);

	if (window->language && window->label)
		return error_field(err, "label",
				   "label: statistics are kept by language and by label; give "
				   "one of the two");
	for (int n = 0; r >= 0 && n < COUNT_FIRST && !h->group && !h->health.degraded;
	     n += COUNT_STEP) {
		r = indexer_count(h, COUNT_STEP);
		if (r <= 0 || (window->pause && !window->pause(window->pause_data)))
			break;
	}
	if (r >= 0)
		r = sums_read(h, window, &range, &all);
	if (r < 0)
		return store_say(err, r);
	root = sums_to_json(&all, &range, window);
	if (!root)
		return store_say(err, -ENOMEM);
	*ret = root;
	return 0;
}
