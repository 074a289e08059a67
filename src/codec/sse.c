/* SPDX-License-Identifier: Apache-2.0 */
/* See sse.h. CR, LF and CRLF all end a line of an event stream, so data is cut at each of them. */
#include "codec/sse.h"

#include <inttypes.h>

static int write_line(struct buf *b, struct span line)
{
	int r = buf_puts(b, "data: ");

	if (r >= 0)
		r = buf_append(b, line.data, line.len);
	return r < 0 ? r : buf_puts(b, "\n");
}

static int write_data(struct buf *b, struct span data)
{
	size_t start = 0;

	if (!data.data)
		data.data = "";
	for (size_t i = 0; i < data.len; i++) {
		int r;

		if (data.data[i] != '\n' && data.data[i] != '\r')
			continue;
		r = write_line(b, (struct span){ data.data + start, i - start });
		if (r < 0)
			return r;
		if (data.data[i] == '\r' && i + 1 < data.len && data.data[i + 1] == '\n')
			i++;
		start = i + 1;
	}
	return write_line(b, (struct span){ data.data + start, data.len - start });
}

int sse_write(struct buf *b, const struct sse_event *event)
{
	int r = 0;

	if (event->name && strpbrk(event->name, "\r\n"))
		return -EINVAL;
	if (event->id >= 0)
		r = buf_printf(b, "id: %" PRId64 "\n", event->id);
	if (r >= 0 && event->name)
		r = buf_printf(b, "event: %s\n", event->name);
	if (r >= 0)
		r = write_data(b, event->data);
	return r < 0 ? r : buf_puts(b, "\n");
}

int sse_write_comment(struct buf *b)
{
	return buf_puts(b, ":\n\n");
}

int ndjson_write(struct buf *b, struct span json)
{
	int r;

	if (memchr(json.data, '\n', json.len) || memchr(json.data, '\r', json.len))
		return -EINVAL;
	r = buf_append(b, json.data, json.len);
	return r < 0 ? r : buf_puts(b, "\n");
}
