/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Statistics are sums of tallies, of minutes or of hours: what is read depends on the length of the
 * window, not on how much ran in it.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/history/indexer.h"
#include "engine/history/store.h"

enum {
	NAMES_MAX = 256,      /* languages and labels in one answer */
	TALLIES_READ = 20000, /* the newest; older ones are left out and `since` says so */
	COUNT_FIRST = 20480,  /* ended executions that may be counted before the answer */
};

struct sum {
	enum sum_kind kind;
	char *name;
	struct run_histogram tally;
};

struct sums {
	struct sum *list[NAMES_MAX];
	size_t n;
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
static struct sum *find_sum(struct sums *all, enum sum_kind kind, const char *name)
{
	struct sum *sum;

	for (size_t i = 0; i < all->n; i++)
		if (all->list[i]->kind == kind && strcmp(all->list[i]->name, name) == 0)
			return all->list[i];
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

static struct time_range choose_range(const struct history_window *w)
{
	int64_t now = clock_realtime_ns() / NS_PER_SEC;
	int64_t since = w->since_ns / NS_PER_SEC;
	int64_t until = w->until_ns > 0 ? (w->until_ns + NS_PER_SEC - 1) / NS_PER_SEC : now + 1;
	struct time_range r = { .span = since >= now - 6 * 3600 ? SPAN_MINUTE : SPAN_HOUR };

	r.from = since - since % r.span;
	r.to = (until + r.span - 1) / r.span * r.span;
	return r;
}

static int read_sums(struct history *h, const char *caller, const struct time_range *range,
		     struct sums *all)
{
	int n = 0, r = 0;
	_cleanup_stmt_ sqlite3_stmt *s = store_ask(
		h, &r, caller ? STMT_TALLY_SUM_OF : STMT_TALLY_SUM,
		VALUES(V_NUMBER(range->span), V_NUMBER(range->from), V_NUMBER(range->to),
		       V_TEXT(caller)));

	while (s && (r = store_step(h, s)) > 0) {
		struct sum *sum = find_sum(all, (enum sum_kind)sqlite3_column_int(s, 0),
					   (const char *)sqlite3_column_text(s, 1));

		if (sum)
			(void)run_histogram_read(&sum->tally, sqlite3_column_blob(s, 2),
						 (size_t)sqlite3_column_bytes(s, 2));
		all->oldest_s = sqlite3_column_int64(s, 3);
		all->cut = ++n == TALLIES_READ;
		if (all->cut)
			break;
	}
	return MIN(r, 0);
}

static json_t *instant(int64_t s)
{
	char text[32];

	clock_format_utc(s * NS_PER_SEC, text, sizeof(text));
	return json_string(text);
}

/* Is it what was asked for as the whole? */
static bool is_total(const struct sum *sum, const struct history_window *w)
{
	if (w->language)
		return sum->kind == HISTOGRAM_LANGUAGE && strcmp(sum->name, w->language) == 0;
	if (w->label)
		return sum->kind == HISTOGRAM_LABEL && strcmp(sum->name, w->label) == 0;
	return sum->kind == HISTOGRAM_ALL;
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

		if (is_total(sum, w))
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
	    json_object_set_new(root, "since", instant(since)) < 0 ||
	    json_object_set_new(root, "until", instant(range->to)) < 0) {
		json_decref(root);
		return NULL;
	}
	return root;
}

int history_stats(struct history *h, const struct history_window *window, json_t **ret,
		  struct error *err)
{
	_cleanup_(sums_done) struct sums all = { .n = 0 };
	struct time_range range = choose_range(window);
	json_t *root;
	int r = arrivals_settle(h);

	if (window->language && window->label)
		return error_field(err, "label",
				   "label: statistics are kept by language and by label; give "
				   "one of the two");
	if (r >= 0 && !h->group && !h->health.degraded)
		r = indexer_count(h, COUNT_FIRST);
	if (r >= 0)
		r = read_sums(h, window->caller, &range, &all);
	if (r < 0)
		return store_say(err, r);
	root = sums_to_json(&all, &range, window);
	if (!root)
		return store_say(err, -ENOMEM);
	*ret = root;
	return 0;
}
