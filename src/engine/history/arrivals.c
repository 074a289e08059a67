/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. An execution that ended while its caller waited is not put into the database at once: its row touches a
 * dozen pages, and the next row writes all of them again. The execution is appended to a file, `arrivals`, with one
 * write, which is as durable as the database's log. history_tick() moves some of the file into the database at a time; a
 * reader first moves all, so no reader sees a history without them. A group (history_begin()) does not wait for that
 * move, and reads without them. The file is emptied when the database is settled on the disk, or earlier when the file
 * is half full.
 *
 * A process that dies leaves the file behind, and the next process takes up the whole records in it. A row that had
 * reached the database is known by its id and left out. A row that a power cut took from the database's log comes back.
 * Nothing is deleted from the database while the file holds a record, because that row would come again. Bytes behind
 * the last whole record are cut off before anything is written there: they may be part of a program's output, which must
 * never be read as a record.
 *
 * An execution that is large, comes with an Idempotency-Key or a callback_url, is part of a group or must reach the disk itself (`full`),
 * and any that cannot be written to the file, goes straight into the database.
 */
#include "engine/history/store.h"

#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/span.h"

enum {
	FILE_MAX = 4 << 20,
	RECORD_MAX = 64 << 10,
	LIST_STEP = 64, /* in one transaction: a small one finds room where a large one does not */
	MAGIC = 0x31767261, /* "arv1" */
};
#define ABSENT UINT32_MAX

enum text {
	TEXT_ID,
	TEXT_CALLER,
	TEXT_LANGUAGE,
	TEXT_POLICY,
	TEXT_LABELS,
	TEXT_CODE_SHA256,
	TEXT_REQUEST,
	TEXT_STATUS,
	TEXT_END_LANGUAGE,
	TEXT_END_POLICY,
	TEXT_RESULT,
	TEXT_CODE,
	TEXT_STDOUT,
	TEXT_STDERR,
	TEXT_MESSAGE,
	_TEXT_MAX,
};

/* As it lies in the file, where only this machine reads it. */
struct arrival {
	uint32_t magic, size; /* of all of it */
	uint64_t sum;	      /* of what follows */
	int64_t at;	      /* µs */
	int64_t request_bytes, ended_ns, duration_us, cpu_us, memory_peak_bytes, kept_bytes;
	int32_t exit_code, turn; /* 0: it had none; else µs from `at` until it came, and one */
	uint32_t len[_TEXT_MAX]; /* ABSENT: none */
	char texts[];		 /* each followed by a NUL */
};

/* Less than sizeof, which counts padding; an id, which every arrival has, is longer than that. */
enum { HEAD = offsetof(struct arrival, texts) };

static uint64_t sum_word(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15;
	return sum ^ sum >> 29;
}

/* record: all bytes of one, whose head says `size`. */
static uint64_t sum_of(const char *record, size_t size)
{
	const char *at = record + offsetof(struct arrival, at);
	size_t left = size - offsetof(struct arrival, at);
	uint64_t sum = size, word;

	for (; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
		(void)memcpy(&word, at, sizeof(word));
		sum = sum_word(sum, word);
	}
	word = 0;
	(void)memcpy(&word, at, left);
	return sum_word(sum, word);
}

static struct span head_of(struct span text, size_t max)
{
	return (struct span){ text.data, MIN(text.len, max) };
}

/* Appends the record to those in memory. Its size, or 0: there is no room, or it is too large to come this way. */
static size_t arrival_append(struct arrivals *all, struct arrival a, const struct history_new *in,
			     const struct history_end *end)
{
	_cleanup_free_ char *labels = json_object_size(in->labels) > 0
					      ? json_dumps(in->labels, JSON_COMPACT)
					      : NULL;
	const struct span texts[_TEXT_MAX] = {
		[TEXT_ID] = span_of(in->id),
		[TEXT_CALLER] = span_of(in->caller),
		[TEXT_LANGUAGE] = span_of(in->language),
		[TEXT_POLICY] = span_of(in->policy),
		[TEXT_LABELS] = span_of(labels),
		[TEXT_CODE_SHA256] = span_of(in->code_sha256),
		[TEXT_REQUEST] = in->request,
		[TEXT_STATUS] = span_of(status_name(end->status)),
		[TEXT_END_LANGUAGE] = span_of(end->language),
		[TEXT_END_POLICY] = span_of(end->policy),
		[TEXT_RESULT] = end->result,
		[TEXT_CODE] = head_of(end->code, WORDS_CODE),
		[TEXT_STDOUT] = head_of(end->stdout_text, WORDS_STREAM),
		[TEXT_STDERR] = head_of(end->stderr_text, WORDS_STREAM),
		[TEXT_MESSAGE] = head_of(end->error_message, WORDS_MESSAGE),
	};
	const size_t before = all->file.len;
	size_t size = HEAD;
	int r = 0;

	for (int i = 0; i < _TEXT_MAX; i++) {
		size += texts[i].data ? texts[i].len + 1 : 0;
		a.len[i] = texts[i].data ? (uint32_t)texts[i].len : ABSENT;
	}
	if (size > RECORD_MAX || (json_object_size(in->labels) > 0 && !labels))
		return 0;
	a.size = (uint32_t)size;
	r = buf_append(&all->file, &a, HEAD);
	for (int i = 0; i < _TEXT_MAX && r >= 0; i++) {
		if (!texts[i].data)
			continue;
		r = buf_append(&all->file, texts[i].data, texts[i].len);
		if (r >= 0)
			r = buf_append(&all->file, "", 1);
	}
	if (r < 0) {
		all->file.len = before;
		return 0;
	}
	a.sum = sum_of(all->file.data + before, a.size);
	(void)memcpy(all->file.data + before + offsetof(struct arrival, sum), &a.sum,
		     sizeof(a.sum));
	return a.size;
}

/* The record at an offset, with what it was made of, pointing into it; labels excepted. */
static struct arrival arrival_read(const struct arrivals *all, size_t at, struct history_new *in,
				   struct history_end *end, struct span texts[_TEXT_MAX])
{
	const char *from = all->file.data + at + HEAD;
	struct arrival a;

	(void)memcpy(&a, all->file.data + at, HEAD);
	for (int i = 0; i < _TEXT_MAX; i++) {
		bool here = a.len[i] != ABSENT;

		texts[i] = here ? (struct span){ from, a.len[i] } : (struct span){ 0 };
		from += here ? a.len[i] + 1 : 0;
	}
	*in = (struct history_new){
		.id = texts[TEXT_ID].data,
		.caller = texts[TEXT_CALLER].data,
		.language = texts[TEXT_LANGUAGE].data,
		.policy = texts[TEXT_POLICY].data,
		.request = texts[TEXT_REQUEST],
		.kept_bytes = a.request_bytes,
		.code_sha256 = texts[TEXT_CODE_SHA256].data,
		.created_ns = a.at * 1000,
		.started_ns = a.turn > 0 ? (a.at + a.turn - 1) * 1000 : 0,
	};
	*end = (struct history_end){
		.status = status_of(texts[TEXT_STATUS].data),
		.exit_code = a.exit_code,
		.ended_ns = a.ended_ns,
		.duration_us = a.duration_us,
		.cpu_us = a.cpu_us,
		.memory_peak_bytes = a.memory_peak_bytes,
		.kept_bytes = a.kept_bytes,
		.language = texts[TEXT_END_LANGUAGE].data,
		.policy = texts[TEXT_END_POLICY].data,
		.result = texts[TEXT_RESULT],
		.code = texts[TEXT_CODE],
		.stdout_text = texts[TEXT_STDOUT],
		.stderr_text = texts[TEXT_STDERR],
		.error_message = texts[TEXT_MESSAGE],
	};
	return a;
}

/* true: nothing lies behind the records. */
static bool arrivals_cut(struct arrivals *all)
{
	if (all->torn && ftruncate(all->fd, (off_t)all->file.len) == 0)
		all->torn = false;
	return !all->torn;
}

bool arrivals_take(struct history *h, const struct history_new *in, const struct history_end *end,
		   int64_t *ret_row)
{
	struct arrivals *all = &h->arrivals;
	struct arrival a = {
		.magic = MAGIC,
		.at = accept_time(h, in),
		.request_bytes = in->kept_bytes,
		.ended_ns = end->ended_ns,
		.duration_us = end->duration_us,
		.cpu_us = end->cpu_us,
		.memory_peak_bytes = end->memory_peak_bytes,
		.kept_bytes = end->kept_bytes,
		.exit_code = end->exit_code,
	};
	const size_t before = all->file.len;
	/* Longer than a record can say: half an hour. */
	const bool waited_long = in->started_ns - in->created_ns >= INT64_C(1000) * INT32_MAX;
	size_t size;

	if (accept_check(in) < 0 || all->fd < 0 || h->group || h->options.full || in->key ||
	    in->interactive || in->callback || waited_long || all->n == ARRIVALS_MAX ||
	    !arrivals_cut(all))
		return false;
	if (in->started_ns)
		a.turn = (int32_t)MAX(in->started_ns / 1000 - a.at + 1, (int64_t)1);
	size = arrival_append(all, a, in, end);
	if (size == 0)
		return false;
	if (pwrite(all->fd, all->file.data + before, size, (off_t)before) != (ssize_t)size) {
		all->file.len = before;
		all->torn = true;
		(void)arrivals_cut(all);
		return false;
	}
	all->n++;
	accept_took(h, a.at);
	*ret_row = a.at;
	return true;
}

/* Its size, or a negative errno. */
static int arrival_list(struct history *h, size_t at)
{
	struct span texts[_TEXT_MAX];
	struct history_new in;
	struct history_end end;
	struct arrival a = arrival_read(&h->arrivals, at, &in, &end, texts);
	int64_t row = a.at;
	json_t *labels = NULL;
	int r;

	if (texts[TEXT_LABELS].data)
		in.labels = labels = json_loads(texts[TEXT_LABELS].data, 0, NULL);
	r = record_insert(h, &in, &end, NULL, &row);
	json_decref(labels);
	/* Its id is taken: it was there before we died. Any other conflict is the database's fault, half way through. */
	if (r == -EEXIST)
		r = sqlite3_extended_errcode(h->db) == SQLITE_CONSTRAINT_UNIQUE ? 0 : -EIO;
	return r < 0 ? r : (int)a.size;
}

/* The next n in one transaction. */
static int arrivals_list_some(struct history *h, size_t n)
{
	struct arrivals *all = &h->arrivals;
	size_t at = all->listed_bytes;
	int r = store_begin(h);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = arrival_list(h, at);
		at += (size_t)MAX(r, 0);
	}
	r = store_end(h, MIN(r, 0));
	if (r < 0)
		return r;
	all->listed += n;
	all->listed_bytes = at;
	/* Also when the database had them all and nothing was written: the file must be emptied. */
	h->unsettled = true;
	return 0;
}

size_t arrivals_waiting(const struct history *h)
{
	return h->arrivals.n - h->arrivals.listed;
}

int arrivals_empty(struct history *h)
{
	struct arrivals *all = &h->arrivals;

	if (all->n == 0 && !all->torn)
		return 0;
	/* One that cannot be emptied is written on, and emptied another time. */
	if (arrivals_waiting(h) > 0 || ftruncate(all->fd, 0) < 0)
		return -EIO;
	all->n = all->listed = all->listed_bytes = all->file.len = 0;
	all->torn = false;
	return 0;
}

int arrivals_list(struct history *h, size_t max)
{
	struct arrivals *all = &h->arrivals;
	size_t n;

	if (h->group)
		return 0;
	for (size_t left = MIN(arrivals_waiting(h), max); left > 0; left -= n) {
		int r;

		n = MIN(left, (size_t)LIST_STEP);
		r = arrivals_list_some(h, n);
		/*
		 * They were acknowledged: room is made for them. Once the database has what is in the log, the log is written from
		 * its start again.
		 */
		if (r == -ENOSPC && store_checkpoint(h) >= 0)
			r = arrivals_list_some(h, n);
		if (r == -ENOSPC && disk_reserve_spend(h)) {
			(void)store_checkpoint(h);
			r = arrivals_list_some(h, n);
		}
		if (r < 0)
			return r;
	}
	assert(all->listed <= all->n && all->listed_bytes <= all->file.len);
	if (all->n > ARRIVALS_MAX / 2 || all->file.len > FILE_MAX / 2)
		(void)arrivals_empty(h);
	return arrivals_waiting(h) > 0;
}

int arrivals_settle(struct history *h)
{
	int r = arrivals_list(h, ARRIVALS_MAX);

	return store_is_trouble(r) ? 0 : MIN(r, 0);
}

int arrivals_durations(const struct history *h, const struct history_past *past,
		       int64_t ret_us[HISTORY_PAST_MAX])
{
	const struct arrivals *all = &h->arrivals;
	size_t at = all->listed_bytes;
	int n = 0;

	/* The newest come last, and first into the answer. */
	for (size_t i = all->listed; i < all->n; i++) {
		struct span texts[_TEXT_MAX];
		struct history_new in;
		struct history_end end;

		at += arrival_read(all, at, &in, &end, texts).size;
		if (!in.code_sha256 || strcmp(in.code_sha256, past->code_sha256) != 0 ||
		    (past->caller && strcmp(in.caller, past->caller) != 0) ||
		    !went_to_its_end(texts[TEXT_STATUS].data) || end.duration_us < 0)
			continue;
		n = MIN(n + 1, HISTORY_PAST_MAX);
		(void)memmove(ret_us + 1, ret_us, (size_t)(n - 1) * sizeof(*ret_us));
		ret_us[0] = end.duration_us;
	}
	return n;
}

/* The size of the whole record that begins here; 0: none does. */
static size_t arrival_check(const char *data, size_t len)
{
	struct arrival a;
	size_t size = HEAD;

	if (len < sizeof(a))
		return 0;
	(void)memcpy(&a, data, HEAD);
	if (a.magic != MAGIC || a.size > MIN(len, (size_t)RECORD_MAX))
		return 0;
	for (int i = 0; i < _TEXT_MAX; i++)
		size += a.len[i] != ABSENT ? (size_t)a.len[i] + 1 : 0;
	return size == a.size && a.sum == sum_of(data, size) ? size : 0;
}

int arrivals_open(struct history *h, struct error *err)
{
	struct arrivals *all = &h->arrivals;
	size_t end = 0, size;
	int r;

	all->file.max = FILE_MAX;
	all->fd = openat(h->dir_fd, ARRIVALS, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = all->fd < 0 ? -errno : buf_read_fd(&all->file, all->fd);
	/* There is none and no room for one: nothing is missing, and all goes straight into the database. */
	if (all->fd < 0 && (r == -ENOSPC || r == -EDQUOT))
		return 0;
	if (r < 0) {
		arrivals_close(h); /* what was not taken up must stay where it is */
		return error_set(err, ERROR_STORAGE, -r, "%s/" ARRIVALS " cannot be read: %s",
				 h->options.dir, strerror(-r));
	}
	for (; all->n < ARRIVALS_MAX; all->n++, end += size) {
		size = arrival_check(all->file.data + end, all->file.len - end);
		if (size == 0)
			break;
	}
	all->torn = end < all->file.len;
	all->file.len = end;
	(void)arrivals_cut(all);
	return 0;
}

void arrivals_close(struct history *h)
{
	struct arrivals *all = &h->arrivals;

	all->fd = fd_close(all->fd);
	buf_done(&all->file);
	*all = (struct arrivals){ .fd = -EBADF };
}
