/* SPDX-License-Identifier: Apache-2.0 */
/* See foreign.h. Most text is printable ASCII, which is copied in runs. */
#include "base/foreign.h"

#include "base/utf8.h"

static int put_character(struct buf *out, const char *data, size_t n, uint32_t c,
			 enum foreign_form form)
{
	bool lines = form == FOREIGN_LINES || form == FOREIGN_JSON;

	if (n == 0)
		return buf_printf(out, "\\x%02x", (unsigned char)*data);
	if (form == FOREIGN_QUOTED && c == '"')
		return buf_puts(out, "\\x22");
	if (!utf8_is_hidden(c) || (lines && (c == '\n' || c == '\t')))
		return buf_append(out, data, n);
	return buf_printf(out, c > 0xff || form == FOREIGN_JSON ? "\\u%04x" : "\\x%02x", c);
}

int foreign_put(struct buf *out, const char *data, size_t n, enum foreign_form form)
{
	int r = form == FOREIGN_QUOTED ? buf_puts(out, "\"") : 0;

	while (r == 0 && n > 0) {
		size_t len = 0;

		while (len < n && data[len] >= ' ' && data[len] <= '~' && data[len] != '"')
			len++;
		if (len > 0) {
			r = buf_append(out, data, len);
		} else {
			uint32_t c = 0;

			len = utf8_decode(data, n, &c);
			r = put_character(out, data, len, c, form);
			len = MAX(len, 1);
		}
		data += len;
		n -= len;
	}
	return r == 0 && form == FOREIGN_QUOTED ? buf_puts(out, "\"") : r;
}
