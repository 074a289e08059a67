/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of the number parsers. Beyond "no crash": failure leaves the output alone, results
 * are never negative, and the parsers agree with each other where their languages overlap.
 */
#include <stdbool.h>
#include <string.h>

#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static int run(int (*parse)(const char *, int64_t *), const char *text, int64_t *ret)
{
	int r;

	*ret = -77;
	r = parse(text, ret);
	require(r == 0 ? *ret >= 0 : (r == -EINVAL || r == -ERANGE) && *ret == -77);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t whole, bytes, ms, milli;
	char text[256];

	if (size >= sizeof(text))
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';

	if (run(parse_size, text, &bytes) == 0)
		require((text[0] >= '0' && text[0] <= '9') || text[0] == '.');
	if (run(parse_i64, text, &whole) == 0) {
		require(run(parse_size, text, &bytes) == 0 && bytes == whole);
		if (run(parse_milli, text, &milli) == 0)
			require(milli == whole * 1000);
	}
	/* A number without a unit is seconds; parsed as milliseconds it equals thousandths. */
	if (run(parse_milli, text, &milli) == 0)
		require(run(parse_time, text, &ms) == 0 && ms == milli);
	(void)run(parse_time, text, &ms);
	return 0;
}
