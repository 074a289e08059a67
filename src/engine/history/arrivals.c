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

static uint64_t add_word(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15;
	return sum ^ sum >> 29;
}

static uint64_t sum_of(const struct arrival *a)
{
	const char *at = (const char *)a + offsetof(struct arrival, at);
	size_t left = a->size - offsetof(struct arrival, at);
	uint64_t sum = a->size, word;

	for (; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
		(void)memcpy(&word, at, sizeof(word));
		sum = add_word(sum, word);
	}
	word = 0;
	(void)memcpy(&word, at, left);
	return add_word(sum, word);
}

static struct span head_of(struct span text, size_t max)
{
	return (struct span){ text.data, MIN(text.len, max) };
}

/* NULL: there is no memory, or it is too large to come this way. */
static struct arrival *arrival_new(const struct history_new *in, const struct history_end *end,
				   const char *labels)
{
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
	size_t size = HEAD;
	struct arrival *a;
	char *to;

	for (int i = 0; i < _TEXT_MAX; i++)
		size += texts[i].data ? texts[i].len + 1 : 0;
	a = size <= RECORD_MAX ? malloc(size) : NULL;
	if (!a)
		return NULL;
	*a = (struct arrival){
		.magic = MAGIC,
		.size = (uint32_t)size,
		.request_bytes = in->kept_bytes,
		.ended_ns = end->ended_ns,
		.duration_us = end->duration_us,
		.cpu_us = end->cpu_us,
		.memory_peak_bytes = end->memory_peak_bytes,
		.kept_bytes = end->kept_bytes,
		.exit_code = end->exit_code,
	};
	to = a->texts;
	for (int i = 0; i < _TEXT_MAX; i++) {
		a->len[i] = texts[i].data ? (uint32_t)texts[i].len : ABSENT;
		if (!texts[i].data)
			continue;
		(void)memcpy(to, texts[i].data, texts[i].len);
		to[texts[i].len] = '\0';
		to += texts[i].len + 1;
	}
	return a;
}

static bool arrival_is_whole(const struct arrival *a)
{
	size_t size = HEAD;

	for (int i = 0; i < _TEXT_MAX; i++)
		size += a->len[i] != ABSENT ? (size_t)a->len[i] + 1 : 0;
	return size == a->size && a->sum == sum_of(a);
}

/* What it was made of, pointing into it; labels excepted. */
static void arrival_read(const struct arrival *a, struct history_new *in, struct history_end *end,
			 struct span texts[_TEXT_MAX])
{
	const char *from = a->texts;

	for (int i = 0; i < _TEXT_MAX; i++) {
		bool here = a->len[i] != ABSENT;

		texts[i] = here ? (struct span){ from, a->len[i] } : (struct span){ 0 };
		from += here ? a->len[i] + 1 : 0;
	}
	*in = (struct history_new){
		.id = texts[TEXT_ID].data,
		.caller = texts[TEXT_CALLER].data,
		.language = texts[TEXT_LANGUAGE].data,
		.policy = texts[TEXT_POLICY].data,
		.request = texts[TEXT_REQUEST],
		.kept_bytes = a->request_bytes,
		.code_sha256 = texts[TEXT_CODE_SHA256].data,
		.created_ns = a->at * 1000,
		.started_ns = a->turn > 0 ? (a->at + a->turn - 1) * 1000 : 0,
	};
	*end = (struct history_end){
		.status = status_of(texts[TEXT_STATUS].data),
		.exit_code = a->exit_code,
		.ended_ns = a->ended_ns,
		.duration_us = a->duration_us,
		.cpu_us = a->cpu_us,
		.memory_peak_bytes = a->memory_peak_bytes,
		.kept_bytes = a->kept_bytes,
		.language = texts[TEXT_END_LANGUAGE].data,
		.policy = texts[TEXT_END_POLICY].data,
		.result = texts[TEXT_RESULT],
		.code = texts[TEXT_CODE],
		.stdout_text = texts[TEXT_STDOUT],
		.stderr_text = texts[TEXT_STDERR],
		.error_message = texts[TEXT_MESSAGE],
	};
}

/* true: nothing lies behind the records. */
static bool cut(struct arrivals *all)
{
	if (all->torn && ftruncate(all->fd, all->bytes) == 0)
		all->torn = false;
	return !all->torn;
}

/* Longer than a record can say: half an hour. */
static bool waited_long(const struct history_new *in)
{
	return in->started_ns - in->created_ns >= INT64_C(1000) * INT32_MAX;
}

bool arrivals_take(struct history *h, const struct history_new *in, const struct history_end *end,
		   int64_t *ret_row)
{
	struct arrivals *all = &h->arrivals;
	_cleanup_free_ struct arrival *a = NULL;
	_cleanup_free_ char *labels = NULL;

	if (accept_check(in) < 0 || all->fd < 0 || h->group || h->options.full || in->key ||
	    in->interactive || in->callback || waited_long(in) || all->n == ARRIVALS_MAX ||
	    all->bytes > FILE_MAX - RECORD_MAX || !cut(all))
		return false;
	if (json_object_size(in->labels) > 0) {
		labels = json_dumps(in->labels, JSON_COMPACT);
		if (!labels)
			return false;
	}
	a = arrival_new(in, end, labels);
	if (!a)
		return false;
	a->at = accept_time(h, in);
	if (in->started_ns)
		a->turn = (int32_t)MAX(in->started_ns / 1000 - a->at + 1, (int64_t)1);
	a->sum = sum_of(a);
	if (pwrite(all->fd, a, a->size, all->bytes) != (ssize_t)a->size) {
		all->torn = true;
		(void)cut(all);
		return false;
	}
	all->bytes += a->size;
	accept_took(h, a->at);
	*ret_row = a->at;
	all->list[all->n++] = TAKE_PTR(a);
	return true;
}

static int list_one(struct history *h, const struct arrival *a)
{
	struct span texts[_TEXT_MAX];
	struct history_new in;
	struct history_end end;
	int64_t row = a->at;
	json_t *labels = NULL;
	int r;

	arrival_read(a, &in, &end, texts);
	if (texts[TEXT_LABELS].data)
		in.labels = labels = json_loads(texts[TEXT_LABELS].data, 0, NULL);
	r = record_insert(h, &in, &end, &row);
	json_decref(labels);
	if (r != -EEXIST)
		return r;
	/* Its id is taken: it was there before we died. Any other conflict is the database's fault, half way through. */
	return sqlite3_extended_errcode(h->db) == SQLITE_CONSTRAINT_UNIQUE ? 0 : -EIO;
}

static int list_first(struct history *h, size_t n)
{
	int r = store_begin(h);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = list_one(h, h->arrivals.list[h->arrivals.listed + i]);
	return store_end(h, r);
}

/* They were acknowledged: room is made for them. */
static int list_step(struct history *h, size_t n)
{
	int r = list_first(h, n);

	/* Once the database has what is in the log, the log is written from its start again. */
	if (r == -ENOSPC && store_checkpoint(h) >= 0)
		r = list_first(h, n);
	if (r == -ENOSPC && disk_reserve_spend(h)) {
		(void)store_checkpoint(h);
		r = list_first(h, n);
	}
	return r;
}

static void forget(struct arrivals *all, size_t n)
{
	for (size_t i = all->listed; i < all->listed + n; i++) {
		free(all->list[i]);
		all->list[i] = NULL;
	}
	all->listed += n;
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
	all->n = all->listed = 0;
	all->bytes = 0;
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
		r = list_step(h, n);
		if (r < 0)
			return r;
		forget(all, n);
		/* Also when the database had them all and nothing was written: the file must be emptied. */
		h->unsettled = true;
	}
	if (all->n > ARRIVALS_MAX / 2 || all->bytes > FILE_MAX / 2)
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
	int n = 0;

	for (size_t i = h->arrivals.n; i-- > h->arrivals.listed && n < HISTORY_PAST_MAX;) {
		struct span texts[_TEXT_MAX];
		struct history_new in;
		struct history_end end;

		arrival_read(h->arrivals.list[i], &in, &end, texts);
		if (in.code_sha256 && strcmp(in.code_sha256, past->code_sha256) == 0 &&
		    (!past->caller || strcmp(in.caller, past->caller) == 0) &&
		    went_to_its_end(texts[TEXT_STATUS].data) && end.duration_us >= 0)
			ret_us[n++] = end.duration_us;
	}
	return n;
}

/* The length of the record that begins here; 0: none does. */
static int load_one(struct arrivals *all, const char *data, size_t len)
{
	struct arrival head, *a;

	if (len < sizeof(head))
		return 0;
	(void)memcpy(&head, data, sizeof(head));
	if (head.magic != MAGIC || head.size < sizeof(head) ||
	    head.size > MIN(len, (size_t)RECORD_MAX))
		return 0;
	a = malloc(head.size);
	if (!a)
		return -ENOMEM;
	(void)memcpy(a, data, head.size);
	if (!arrival_is_whole(a)) {
		free(a);
		return 0;
	}
	all->list[all->n++] = a;
	return (int)head.size;
}

static int load_all(struct arrivals *all, const struct buf *data)
{
	int r = 1;

	while (r > 0 && all->n < ARRIVALS_MAX) {
		r = load_one(all, data->data + all->bytes, data->len - (size_t)all->bytes);
		all->bytes += MAX(r, 0);
	}
	return MIN(r, 0);
}

int arrivals_open(struct history *h, struct error *err)
{
	_cleanup_buf_ struct buf data = { .max = FILE_MAX };
	struct arrivals *all = &h->arrivals;
	int r;

	all->fd = openat(h->dir_fd, ARRIVALS, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = all->fd < 0 ? -errno : buf_read_fd(&data, all->fd);
	/* There is none and no room for one: nothing is missing, and all goes straight into the database. */
	if (all->fd < 0 && (r == -ENOSPC || r == -EDQUOT))
		return 0;
	if (r >= 0)
		r = load_all(all, &data);
	if (r < 0) {
		arrivals_close(h); /* what was not taken up must stay where it is */
		return error_set(err, ERROR_STORAGE, -r, "%s/" ARRIVALS " cannot be read: %s",
				 h->options.dir, strerror(-r));
	}
	all->torn = (size_t)all->bytes < data.len;
	(void)cut(all);
	return 0;
}

void arrivals_close(struct history *h)
{
	struct arrivals *all = &h->arrivals;

	forget(all, arrivals_waiting(h));
	all->n = all->listed = 0;
	all->bytes = 0;
	all->fd = fd_close(all->fd);
}
