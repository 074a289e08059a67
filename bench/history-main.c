/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the history costs, and whether that depends on how much it holds: `bench-history ROWS DIR` fills a store
 * with so many ended executions in large groups, digests them, and then measures single calls as the engine makes
 * them: first pages, of exactly so many rows, then writes. One JSON object on stdout; bench/history.py compares two of
 * them. A store that is there already is not filled again; `bench-history ROWS DIR KIND` measures one kind of pages, to be
 * counted by valgrind (--tool=callgrind --toggle-collect=history_list).
 *
 * A few rows lie evenly among all others, equally many in a store of any size: those of a caller that comes seldom, with a
 * language, a label, a status and a word of its own.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "engine/history/history.h"

enum {
	GROUP = 2000,
	TRIES = 1000,
	PAGES = 200,
	PAGE_ROWS = 50,
	STARTS = 8,	       /* places where pages begin, … */
	START_ROWS = 137,      /* … so many rows apart, … */
	START_ROWS_SHARE = 50, /* … or no more than this part of a small store */
	ROUNDS = 3,	       /* of all, each with lines of its own: the best is taken */
	US_APART = 1000,
	RARE = 10,    /* one in so many has the rare label, wrote the rare word … */
	TIMEOUTS = 5, /* … timed out: a page of one caller's too must be full in a small store */
	FEW = 80,     /* in any store */
	TEAMS = 4,    /* every row has one, those of a few the first … */
	LABELS_RARE = TEAMS,
	LABELS_FEW,
	_LABELS_MAX,
	CODES = 5000,
	TICK_EVERY = 200,      /* records */
	WORDY = 256,	       /* executions … */
	WORDY_BYTES = 8 << 10, /* … that write so much, every word of it another one */
};

static const char request[] = "{\"language\":\"python\",\"code\":\"import math\\nfor i in "
			      "range(10):\\n    print(math.sqrt(i), "
			      "'some text of a program that is not very "
			      "long')\\n\",\"limits\":{\"timeout\":10},\"labels\":{}}";
static const char code[] = "import math\nfor i in range(10):\n    print(math.sqrt(i), "
			   "'some text of a program that is not very long')\n";

struct bench {
	struct history *h;
	int64_t first_ns, now_ns;
	uint64_t random;
	int64_t start_rows;
	bool few;	   /* the next row is one of them */
	struct span words; /* what it writes; len 0: little */
	const char *only;
	char result[1600];
	json_t *labels[_LABELS_MAX];
	int64_t samples[TRIES];
};

static uint64_t roll(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random;
}

static void make_id(struct bench *b, char id[HISTORY_ID])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

	(void)snprintf(id, HISTORY_ID, "ex_");
	for (int i = 3; i < HISTORY_ID - 1; i++)
		id[i] = digits[roll(b) % 32];
	id[HISTORY_ID - 1] = '\0';
}

static void code_hash(uint64_t which, char ret[65])
{
	(void)snprintf(ret, 65, "%016llx%048d", (unsigned long long)(which * 0x9e3779b97f4a7c15),
		       0);
}

enum kind {
	ACCEPTED, /* running */
	FINISHED, /* that, and then its end */
	RECORDED, /* both at once, as one whose caller waited */
};

static int put(struct bench *b, enum kind kind, int64_t *row)
{
	static const char *const languages[] = { "python", "javascript", "bash", "c", "ruby" };
	static const char *const callers[] = { "alice", "bob", "carol", "dave" };
	const bool few = b->few;
	uint64_t dice = roll(b);
	char id[HISTORY_ID], hash[65], out[64];
	struct history_new in = {
		.id = id,
		.caller = callers[few ? 3 : dice % 3],
		.language = languages[few ? 4 : dice / 3 % 4],
		.request = { request, sizeof(request) - 1 },
		.code_sha256 = hash,
		.labels = b->labels[few			     ? LABELS_FEW
				    : dice / 600 % RARE == 0 ? LABELS_RARE
							     : dice / 12 % TEAMS],
		.created_ns = b->now_ns,
		.running = true,
	};
	struct history_end end = {
		.status = few			      ? STATUS_ERROR
			  : dice / 48 % TIMEOUTS == 0 ? STATUS_TIMEOUT
						      : STATUS_SUCCESS,
		.ended_ns = b->now_ns,
		.duration_us = (int64_t)(dice >> 32) % 100000,
		.cpu_us = 900,
		.memory_peak_bytes = 9 << 20,
		.policy = "default",
		.result = { b->result, sizeof(b->result) - 1 },
		.code = { code, sizeof(code) - 1 },
		.stdout_text = { out, 0 },
	};
	int r;

	b->now_ns += US_APART * 1000;
	make_id(b, id);
	end.stdout_text.len = (size_t)snprintf(out, sizeof(out), "answer number%llu shade%llu %s",
					       (unsigned long long)(dice % 100000),
					       (unsigned long long)(dice / 7 % RARE),
					       few ? "seldom" : "");
	if (b->words.len > 0)
		end.stdout_text = b->words;
	code_hash(dice % CODES, hash);
	if (kind == RECORDED)
		return history_record(b->h, &in, &end, row, NULL);
	r = history_accept(b->h, &in, row, NULL);
	return r < 0 || kind == ACCEPTED ? r : history_finish(b->h, *row, &end, NULL);
}

/* The times of rows: those of a store that is there already go on behind its newest. */
static int set_clock(struct bench *b, int64_t rows)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	int r = history_list(b->h, &(struct history_filter){ .limit = 1 }, &page, NULL);

	b->now_ns = clock_realtime_ns();
	if (r >= 0 && page.n > 0)
		b->now_ns = page.rows[0].created_ns + US_APART * 1000;
	b->first_ns = b->now_ns - rows * US_APART * 1000;
	if (r >= 0 && page.n == 0)
		b->now_ns = b->first_ns;
	else
		b->random += (uint64_t)b->now_ns;
	return r;
}

static int fill(struct bench *b, int64_t rows)
{
	int64_t row;
	int r = 0;

	for (int64_t i = 0; i < rows && r >= 0; i++) {
		if (i % GROUP == 0)
			r = history_begin(b->h, NULL);
		b->few = i % (rows / FEW) == rows / FEW / 2;
		if (r >= 0)
			r = put(b, FINISHED, &row);
		if (r >= 0 && (i % GROUP == GROUP - 1 || i == rows - 1))
			r = history_commit(b->h, NULL);
		if (i % (GROUP * 10) == GROUP * 10 - 1)
			while (history_tick(b->h))
				;
	}
	b->few = false;
	while (history_tick(b->h))
		;
	return r;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(struct bench *b, const char *name, size_t n)
{
	qsort(b->samples, n, sizeof(b->samples[0]), compare);
	printf(", \"%s\": {\"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}",
	       name, (double)b->samples[n / 2] / 1e3, (double)b->samples[n * 9 / 10] / 1e3,
	       (double)b->samples[n * 99 / 100] / 1e3, (double)b->samples[n - 1] / 1e3);
}

/* With history_tick() between them, as a daemon has it: its time is shown too. */
static int measure_records(struct bench *b, int64_t *tick_ns)
{
	int64_t row, start;
	int r = 0;

	for (int i = 0; i < TRIES && r >= 0; i++) {
		start = clock_now_ns();
		r = put(b, RECORDED, &row);
		b->samples[i] = clock_now_ns() - start;
		if (i % TICK_EVERY != TICK_EVERY - 1)
			continue;
		start = clock_now_ns();
		while (history_tick(b->h))
			;
		*tick_ns += clock_now_ns() - start;
	}
	report(b, "record", TRIES);
	return r;
}

static int measure_writes(struct bench *b)
{
	static int64_t rows[TRIES];
	static const struct history_end end = { .status = STATUS_SUCCESS,
						.duration_us = 2100,
						.cpu_us = 900,
						.memory_peak_bytes = 9 << 20,
						.policy = "default",
						.code = { code, sizeof(code) - 1 } };
	int64_t start, tick_ns = 0;
	int r = 0;

	for (int i = 0; i < TRIES && r >= 0; i++) {
		start = clock_now_ns();
		r = put(b, ACCEPTED, &rows[i]);
		b->samples[i] = clock_now_ns() - start;
	}
	report(b, "insert", TRIES);
	for (int i = 0; i < TRIES && r >= 0; i++) {
		struct history_end e = end;
		char out[64];

		e.ended_ns = b->now_ns;
		e.result = (struct span){ b->result, sizeof(b->result) - 1 };
		e.stdout_text.data = out;
		e.stdout_text.len = (size_t)snprintf(out, sizeof(out), "answer shade%llu",
						     (unsigned long long)(roll(b) % RARE));
		start = clock_now_ns();
		r = history_finish(b->h, rows[i], &e, NULL);
		b->samples[i] = clock_now_ns() - start;
	}
	report(b, "finish", TRIES);
	r = r < 0 ? r : measure_records(b, &tick_ns);
	for (int i = 0; i < TRIES / 8 && r >= 0; i++) {
		int64_t row;

		start = clock_now_ns();
		r = history_begin(b->h, NULL);
		for (int k = 0; k < 8 && r >= 0; k++)
			r = put(b, FINISHED, &row);
		if (r >= 0)
			r = history_commit(b->h, NULL);
		b->samples[i] = (clock_now_ns() - start) / 8;
	}
	report(b, "both_in_groups_of_8", TRIES / 8);
	size_t ticks = 0;

	for (bool more = true; more && ticks < TRIES; ticks++) {
		start = clock_now_ns();
		more = history_tick(b->h);
		b->samples[ticks] = clock_now_ns() - start;
		tick_ns += b->samples[ticks];
	}
	report(b, "tick", ticks);
	printf(", \"digest_us_a_row\": %.1f", (double)tick_ns / 1e3 / (3 * TRIES));
	return r;
}

/* How long the loop of a daemon stands still at most when there is much to index. */
static int measure_wordy(struct bench *b)
{
	static char text[WORDY_BYTES + 32];
	size_t ticks = 0;
	int64_t row;
	int r = 0;

	for (int i = 0; i < WORDY && r >= 0; i++) {
		b->words = (struct span){ text, 0 };
		while (b->words.len < WORDY_BYTES)
			b->words.len += (size_t)snprintf(text + b->words.len, 16, "%08x ",
							 (unsigned)roll(b));
		r = put(b, FINISHED, &row);
	}
	b->words.len = 0;
	for (bool more = true; more && ticks < TRIES; ticks++) {
		int64_t start = clock_now_ns();

		more = history_tick(b->h);
		b->samples[ticks] = clock_now_ns() - start;
	}
	report(b, "tick_wordy", ticks);
	return r;
}

struct pages {
	const char *name;
	struct history_filter filter;
};

static int next_page(struct bench *b, struct pages *p, char cursor[HISTORY_CURSOR], size_t *n)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	int64_t start = clock_now_ns();
	int r;

	p->filter.limit = PAGE_ROWS;
	p->filter.cursor = cursor[0] ? cursor : NULL;
	r = history_list(b->h, &p->filter, &page, NULL);
	b->samples[*n] = clock_now_ns() - start;
	(*n)++;
	(void)snprintf(cursor, HISTORY_CURSOR, "%s", page.next);
	return r;
}

/* Pages that begin here and there among the newest rows, over and over. Then on from there, once, as far as there are more. */
static int measure_pages(struct bench *b, struct pages p)
{
	const int64_t until_ns = p.filter.until_ns > 0 ? p.filter.until_ns : b->now_ns;
	char cursor[HISTORY_CURSOR] = "", deep[64];
	size_t n = 0;
	int r = 0;

	for (int i = 0; i < PAGES && r >= 0; i++) {
		p.filter.until_ns = until_ns - i % STARTS * b->start_rows * US_APART * 1000LL;
		cursor[0] = '\0';
		r = next_page(b, &p, cursor, &n);
	}
	if (n > 0)
		report(b, p.name, n);
	n = 0;
	for (int i = 0; i < PAGES && r >= 0 && cursor[0]; i++)
		r = next_page(b, &p, cursor, &n);
	(void)snprintf(deep, sizeof(deep), "%s_deep", p.name);
	if (n > 0)
		report(b, deep, n);
	return r;
}

static int measure_stats(struct bench *b)
{
	int r = 0;

	for (size_t n = 0; n < 20 && r >= 0; n++) {
		json_t *stats = NULL;
		int64_t start = clock_now_ns();

		r = history_stats(b->h, &(struct history_window){ 0 }, &stats, NULL);
		b->samples[n] = clock_now_ns() - start;
		json_decref(stats);
	}
	report(b, "stats", 20);
	return r;
}

/* What every run asks about its code. */
static int measure_past(struct bench *b)
{
	int64_t past[HISTORY_PAST_MAX];
	char hash[65];
	int r = 0;

	for (size_t n = 0; n < PAGES && r >= 0; n++) {
		code_hash(n % 20, hash);
		int64_t start = clock_now_ns();

		r = history_durations(b->h, &(struct history_past){ .code_sha256 = hash }, past);
		b->samples[n] = clock_now_ns() - start;
	}
	report(b, "past", PAGES);
	return r;
}

#define TEAM(n) .label_name = "team", .label_value = n

static int measure_all_pages(struct bench *b)
{
	static const char *const more_statuses[] = { "error", NULL };
	static const struct history_label more_labels[] = { { "once", "yes" }, { 0 } };
	/* A quarter of all rows is newer. */
	const int64_t past_ns = b->now_ns - (b->now_ns - b->first_ns) / 4;
	const struct pages pages[] = {
		{ "page", { 0 } },
		{ "page_time", { .since_ns = 1, .until_ns = past_ns } },
		{ "page_status", { .status = "success" } },
		{ "page_rare_status", { .status = "timeout" } },
		{ "page_few_status", { .status = "error" } },
		{ "page_statuses", { .status = "timeout", .more_statuses = more_statuses } },
		{ "page_language", { .language = "bash" } },
		{ "page_few_language", { .language = "ruby" } },
		{ "page_label", { TEAM("1") } },
		{ "page_rare_label", { TEAM("4") } },
		{ "page_few_label", { .label_name = "once", .label_value = "yes" } },
		{ "page_labels", { TEAM("0"), .more_labels = more_labels } },
		{ "page_caller", { .caller = "bob" } },
		{ "page_caller_time", { .caller = "bob", .until_ns = past_ns } },
		{ "page_few_caller", { .caller = "dave" } },
		{ "page_caller_language", { .caller = "bob", .language = "c" } },
		{ "page_caller_success", { .caller = "bob", .status = "success" } },
		{ "page_caller_status", { .caller = "bob", .status = "timeout" } },
		{ "page_caller_label", { .caller = "bob", TEAM("1") } },
		{ "page_few_caller_success", { .caller = "dave", .status = "success" } },
		{ "page_few_caller_status", { .caller = "dave", .status = "timeout" } },
		{ "page_few_caller_label", { .caller = "dave", TEAM("0") } },
		{ "page_few_caller_few_status", { .caller = "dave", .status = "error" } },
		{ "page_language_label", { .language = "bash", TEAM("1") } },
		{ "page_language_status", { .language = "bash", .status = "timeout" } },
		{ "page_few_language_label", { .language = "ruby", TEAM("0") } },
		{ "page_few_status_label", { .status = "error", TEAM("1") } },
		{ "page_word", { .text = "answer" } },
		{ "page_rare_word", { .text = "shade7" } },
		{ "page_few_word", { .text = "seldom" } },
		{ "page_words", { .text = "answer program" } },
		{ "page_mixed_words", { .text = "answer shade7" } },
		{ "page_few_words", { .text = "answer seldom" } },
		{ "page_no_word", { .text = "absent" } },
		{ "page_no_words", { .text = "answer absent" } },
		{ "page_disjoint_words", { .text = "shade6 shade7" } },
		{ "page_disjoint_words_caller", { .text = "shade6 shade7", .caller = "bob" } },
		{ "page_word_time", { .text = "answer", .until_ns = past_ns } },
		{ "page_rare_word_time", { .text = "shade7", .until_ns = past_ns } },
		{ "page_few_word_time", { .text = "seldom", .until_ns = past_ns } },
		{ "page_words_time", { .text = "answer program", .until_ns = past_ns } },
		{ "page_mixed_words_time", { .text = "answer shade7", .until_ns = past_ns } },
		{ "page_word_caller", { .text = "answer", .caller = "bob" } },
		{ "page_word_few_caller", { .text = "answer", .caller = "dave" } },
		{ "page_rare_word_few_caller", { .text = "shade7", .caller = "dave" } },
		{ "page_few_word_caller", { .text = "seldom", .caller = "bob" } },
		{ "page_word_language", { .text = "program", .language = "bash" } },
		{ "page_word_few_language", { .text = "program", .language = "ruby" } },
		{ "page_word_label", { .text = "answer", TEAM("1") } },
		{ "page_word_few_label",
		  { .text = "answer", .label_name = "once", .label_value = "yes" } },
		{ "page_word_rare_status", { .text = "answer", .status = "timeout" } },
		{ "page_word_few_status", { .text = "answer", .status = "error" } },
		{ "page_rare_word_status", { .text = "shade7", .status = "success" } },
	};
	int r = 0;

	for (size_t i = 0; i < ROUNDS * ARRAY_SIZE(pages) && r >= 0; i++)
		if (!b->only || strcmp(b->only, pages[i % ARRAY_SIZE(pages)].name) == 0)
			r = measure_pages(b, pages[i % ARRAY_SIZE(pages)]);
	return r;
}

static int measure(struct bench *b)
{
	int r = measure_all_pages(b);

	if (b->only)
		return r;
	if (r >= 0)
		r = measure_past(b);
	if (r >= 0)
		r = measure_stats(b);
	for (int i = 0; i < ROUNDS && r >= 0; i++)
		r = measure_writes(b);
	return r < 0 ? r : measure_wordy(b);
}

static void make_labels(struct bench *b)
{
	char team[16];

	for (size_t i = 0; i < LABELS_FEW; i++) {
		(void)snprintf(team, sizeof(team), "%zu", i);
		b->labels[i] = json_pack("{s:s}", "team", team);
	}
	b->labels[LABELS_FEW] = json_pack("{s:s, s:s}", "team", "0", "once", "yes");
}

int main(int argc, char **argv)
{
	static struct bench b = { .random = 88172645463325252ULL };
	_cleanup_(history_cleanup) struct history *h = NULL;
	struct error err = { 0 };
	int64_t rows = 0, start = clock_now_ns();

	if (argc < 3 || argc > 4 || parse_i64(argv[1], &rows) < 0 || rows < FEW) {
		fprintf(stderr, "usage: bench-history ROWS DIR [KIND]\n");
		return 2;
	}
	if (history_open(&(struct history_options){ .dir = argv[2] }, &h, &err) < 0) {
		fprintf(stderr, "bench-history: %s\n", err.text);
		return 1;
	}
	(void)memset(b.result, 'r', sizeof(b.result) - 1);
	make_labels(&b);
	b.h = h;
	b.start_rows = MIN(rows / START_ROWS_SHARE, START_ROWS);
	b.only = argv[3];
	if (set_clock(&b, rows) < 0 || (history_health(h).rows == 0 && fill(&b, rows) < 0))
		return 1;
	while (history_tick(h))
		;
	printf("{\"rows\": %lld, \"fill_s\": %.1f", (long long)history_health(h).rows,
	       (double)(clock_now_ns() - start) / 1e9);
	if (measure(&b) < 0)
		return 1;
	printf("}\n");
	return 0;
}
