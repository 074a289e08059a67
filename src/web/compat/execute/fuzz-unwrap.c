/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as the text of a model. The result is part of the input or owned memory, is not longer than the input,
 * and stays the same when unwrapped again.
 */
#include <assert.h>
#include <string.h>

#include "web/compat/execute/unwrap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct span text, bool python)
{
	struct unwrapped first = { 0 }, second = { 0 };

	assert(unwrap(text, python, &first) == 0);
	assert(unwrap(text, python, &second) == 0);
	assert(first.code.len <= text.len && first.code.len == second.code.len);
	assert(memcmp(first.code.data, second.code.data, first.code.len) == 0);
	assert(first.owned ||
	       (first.code.data >= text.data &&
		first.code.data + first.code.len <= text.data + text.len) ||
	       first.code.len == 0);
	unwrapped_done(&first);
	unwrapped_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = { (const char *)data, size };

	check(text, true);
	check(text, false);
	return 0;
}
