/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer with a bound set at birth. An append that would pass the bound fails with
 * -ENOBUFS and changes nothing. `data` is always followed by a NUL that `len` does not count.
 */
#pragma once

#include "base/macro.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

struct buf {
	char *data;
	size_t len;
	size_t capacity; /* at most max + 1 */
	size_t max;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
/* The slow path of buf_append(): grows the buffer, or refuses. */
int buf_grow_append(struct buf *b, const void *data, size_t n) _must_check_;

/* Inline, because most appends are a few bytes. */
_must_check_ static inline int buf_append(struct buf *b, const void *data, size_t n)
{
	if (n >= b->capacity - b->len)
		return buf_grow_append(b, data, n);
	if (n > 0)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

_must_check_ static inline int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...) _must_check_ _printf_(2, 3);
/* Reads a whole fd into the buffer; -EFBIG when it holds more than the bound. */
int buf_read_fd(struct buf *b, int fd) _must_check_;
/* Moves the bytes out (NUL-terminated, caller frees); the buffer is empty afterwards. */
char *buf_take(struct buf *b);

#define _cleanup_buf_ _cleanup_(buf_done)
