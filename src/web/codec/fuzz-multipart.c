/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of forms: a Content-Type, a line's end, and a body. Beyond "no crash": parts lie in the body one after the other, and
 * none holds the boundary.
 */
#include "web/codec/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span body = { (const char *)data, size }, type;
	struct multipart_part part;
	struct multipart m;
	const char *at;

	if (size == 0 || !span_split(&body, '\n', &type) || !body.data ||
	    multipart_init(&m, type, body) < 0)
		return 0;
	for (at = body.data; multipart_next(&m, &part) > 0;) {
		require(part.name.data > at && part.content.data >= part.name.data + part.name.len);
		require(!part.filename.data ||
			(part.filename.data > at && part.filename.data <= part.content.data));
		require(!memmem(part.content.data, part.content.len, m.mark, m.mark_len));
		at = part.content.data + part.content.len;
		require(at <= body.data + body.len);
	}
	return 0;
}
