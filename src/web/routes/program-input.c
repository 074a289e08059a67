/* SPDX-License-Identifier: Apache-2.0 */
/* See program-input.h. Signals wait for "running": the first output of a program may arrive before that event. */
#include "web/routes/program-input.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

enum { SIGNAL_RETRY_MS = 5 };

static void input_send_signals(struct program_input *p)
{
	struct execution *x = p->watcher ? watcher_execution(p->watcher) : NULL;
	size_t sent = 0;

	while (sent < p->n_signals) {
		if (p->watcher && (!x || execution_has_ended(x)))
			sent = p->n_signals;
		else if (!x || execution_signal(x, p->signals[sent]) == -ESRCH)
			break;
		else
			sent++;
	}
	p->n_signals -= sent;
	memmove(p->signals, p->signals + sent, p->n_signals * sizeof(p->signals[0]));
	source_set_time(p->retry, p->n_signals == 0 ? INT64_MAX
						    : clock_now_ns() + SIGNAL_RETRY_MS * NS_PER_MS);
}

static int on_input_retry(void *data, uint32_t events _unused_)
{
	input_send_signals(data);
	return 0;
}

int program_input_init(struct program_input *p, struct loop *loop)
{
	buf_init(&p->bytes, PROGRAM_INPUT_BYTES_MAX);
	return loop_add_timer(loop, INT64_MAX, (struct handler){ on_input_retry, p }, &p->retry);
}

void program_input_done(struct program_input *p)
{
	p->retry = source_free(p->retry);
	buf_done(&p->bytes);
	charge_done(&p->held);
}

int program_input_add(struct program_input *p, struct span bytes, struct error *err)
{
	int r;

	if (p->ends)
		return -EPIPE;
	if (http_check_bytes(&p->held, SLOT_BODY_BYTES, p->bytes.len, bytes.len, err) < 0)
		return -EBUSY;
	/* What was taken makes room, also for a program that never takes all. */
	if (p->taken > p->bytes.len / 2) {
		memmove(p->bytes.data, p->bytes.data + p->taken, p->bytes.len - p->taken);
		p->bytes.len -= p->taken;
		charge_add(&p->held, -(int64_t)p->taken);
		p->taken = 0;
	}
	r = buf_append(&p->bytes, bytes.data, bytes.len);
	if (r == 0)
		charge_add(&p->held, (int64_t)bytes.len);
	return r < 0 ? -ENOBUFS : 0;
}

void program_input_end(struct program_input *p)
{
	p->ends = true;
}

bool program_input_feed(struct program_input *p)
{
	struct execution *x = p->watcher ? watcher_execution(p->watcher) : NULL;
	const size_t before = p->taken;
	bool closed = false;
	ssize_t n = 0;

	assert(p->taken <= p->bytes.len);
	if (!p->watcher)
		return p->bytes.len > 0;
	if (!x || execution_has_ended(x)) {
		p->taken = p->bytes.len;
	} else if (execution_is_running(x)) {
		if (p->taken < p->bytes.len)
			n = execution_stdin_write(x, p->bytes.data + p->taken,
						  p->bytes.len - p->taken);
		closed = n == -EPIPE;
		if (closed)
			p->taken = p->bytes.len;
		else if (n > 0)
			p->taken += (size_t)n;
		if (p->ends && p->taken == p->bytes.len) {
			p->ends = false;
			execution_stdin_close(x);
		}
	}
	n = (ssize_t)(p->taken - before);
	if (p->taken == p->bytes.len) {
		buf_done(&p->bytes);
		buf_init(&p->bytes, PROGRAM_INPUT_BYTES_MAX);
		charge_add(&p->held, -p->held.amount);
		p->taken = 0;
	}
	if (n > 0 && p->on_taken)
		p->on_taken(p->data, (size_t)n);
	if (closed && p->on_closed)
		p->on_closed(p->data);
	return p->bytes.len > 0;
}

void program_input_signal(struct program_input *p, int number)
{
	if (p->n_signals == PROGRAM_SIGNALS_MAX)
		return;
	p->signals[p->n_signals++] = number;
	input_send_signals(p);
}
