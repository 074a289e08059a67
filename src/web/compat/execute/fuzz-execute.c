/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as the body of POST /execute: either an answer, or a request that the native reader accepts. */
#include <assert.h>
#include <string.h>

#include "base/macro.h"
#include "web/compat/execute/execute-002.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const languages[] = { "bash", "python", NULL };
	const struct execute_input in = { "application/json", { (const char *)data, size } };
	struct execute_options options = { .languages = languages,
					   .timeout_max = 300,
					   .memory_bytes = GiB,
					   .cpus = 1,
					   .pids = EXECUTE_PIDS,
					   .output_bytes = EXECUTE_OUTPUT_BYTES,
					   .disk_bytes = EXECUTE_DISK_BYTES,
					   .files = EXECUTE_FILES,
					   .workspace = "execute" };

	for (int all = 0; all < 2; all++) {
		struct execute_call call = { 0 };

		options.all_languages = all;
		assert(execute_read(&in, &options, &call) == 0);
		assert(!call.request != !call.answer);
		if (call.request) {
			const json_t *code = json_object_get(call.request, "code");

			assert(json_is_string(code) && json_string_length(code) <= size);
		} else {
			assert(call.status == 200 || call.status == 400);
		}
		execute_done(&call);
	}
	return 0;
}
