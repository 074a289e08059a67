/* SPDX-License-Identifier: Apache-2.0 */
/* See buf.h. Growth doubles, so n appends cost O(n) copies; the bound is checked before growing. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

static int reserve(struct buf *b, size_t extra)
{
	const size_t max = MIN(b->max, (size_t)PTRDIFF_MAX); /* no object is larger */
	size_t want, capacity;
	char *data;

	if (extra > max || b->len > max - extra)
		return -ENOBUFS;
	want = b->len + extra + 1;
	if (want <= b->capacity)
		return 0;
	capacity = b->capacity ? b->capacity : 256;
	while (capacity < want)
		capacity *= 2;
	capacity = MIN(capacity, max + 1);
	data = realloc(b->data, capacity);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->capacity = capacity;
	return 0;
}

int buf_grow_append(struct buf *b, const void *data, size_t n)
{
	int r = reserve(b, n);

	return r < 0 ? r : buf_append(b, data, n);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = reserve(b, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	n = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	b->len += (size_t)n;
	return 0;
}

int buf_read_fd(struct buf *b, int fd)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return buf_append(b, "", 0);
		r = buf_append(b, chunk, (size_t)n);
		if (r < 0)
			return r == -ENOBUFS ? -EFBIG : r;
	}
}

char *buf_take(struct buf *b)
{
	char *data = TAKE_PTR(b->data);

	*b = (struct buf){ .max = b->max };
	return data;
}
