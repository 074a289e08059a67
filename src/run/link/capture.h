/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kept part of one output stream. The first half of the limit fills `head`, the second half is a
 * ring over the most recent bytes: the head has the cause, the tail has the end. For any amount of
 * output, memory stays within the limit and `bytes` counts exactly.
 *
 * Invariant (without a keeper): head_len + tail_len + dropped == bytes, and dropped == 0 as long as bytes <= limit.
 */
#pragma once

#include "base/macro.h"
#include "spec/result.h"
#include "spec/run-event.h"

struct capture {
	size_t head_max, tail_max; /* together the limit */
	char *head;
	size_t head_len, head_capacity;
	char *tail;
	size_t tail_len, tail_capacity;
	size_t tail_next; /* the next place to write in the ring, once the ring is full */
	int64_t bytes;
	struct run_keeper
		keeper; /* of all bytes; then there is no head and no tail. read NULL: none */
	enum output_stream stream; /* as the keeper calls it */
};

void capture_init(struct capture *c, int64_t limit_bytes);
void capture_done(struct capture *c);
int capture_add(struct capture *c, const void *data, size_t n) _must_check_;
/*
 * Output that a keeper may have: then it is only counted here. kept: the keeper has these bytes and all before them; once it has not, the
 * bytes before are read back, and the rest is kept here.
 */
int capture_take(struct capture *c, const void *data, size_t n, bool kept) _must_check_;
/* No more comes: reads head and tail back from the keeper, if there is one. Negative errno, also when it has less. */
int capture_settle(struct capture *c) _must_check_;
/*
 * The kept bytes as one text. If bytes were dropped, a marker "\n... [N bytes omitted] ...\n" stands
 * between head and tail, both cut where a UTF-8 sequence begins; N counts the bytes of those cuts too.
 */
int capture_text(const struct capture *c, struct result_stream *ret) _must_check_;
