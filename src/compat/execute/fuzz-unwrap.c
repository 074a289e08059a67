/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as what a model wrote. Whatever comes out lies inside what went in or in memory of its own, is no
 * longer than it, and stays as it is when the same text is looked at twice.
 */
#include <assert.h>
#include <string.h>

#include "compat/execute/unwrap.h"

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
