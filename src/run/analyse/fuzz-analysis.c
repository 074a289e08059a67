/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte selects a language and whether its compiler failed; the rest is the program's text and, after
 * a NUL, the output. For all input an analysis and a report are made, and they are JSON.
 */
#include <assert.h>
#include <string.h>

#include "run/analyse/analyse.h"
#include "spec/utf8-json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const languages[] = { "python", "javascript", "typescript", "bash", "ruby",
					 "go",	   "c",		 "cpp",	       "rust", "java",
					 "php",	   "perl",	 "lua",	       "r" };

static json_t *make_result(const char *language, bool compiling, json_t *words)
{
	return json_pack("{s:s, s:s, s:i, s:{s:s, s:s}, s:s, s:o, s:[{s:s, s:s}]}", "language",
			 language, "status", "error", "exit_code", 1, "cause", "kind", "exit",
			 "detail", "exited with 1", "stdout", "", "stderr", words, "stages", "name",
			 compiling ? "compile" : "run", "status", "error");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	const char *language = size > 0 ? languages[(data[0] & 0x7f) % ARRAY_SIZE(languages)]
					: NULL;
	const char *cut;
	size_t code;
	json_t *request, *result, *analysis, *report;
	_cleanup_free_ char *markdown = NULL;

	if (size < 2)
		return 0;
	cut = memchr(text, '\0', size - 1);
	code = cut ? (size_t)(cut - text) : 0;
	request = json_pack("{s:s, s:o}", "language", language, "code",
			    utf8_to_json(text, code, NULL));
	result = make_result(
		language, data[0] & 0x80,
		utf8_to_json(cut ? cut + 1 : text, size - 1 - code - (cut != NULL), NULL));
	analysis = analysis_make(request, result);
	report = debug_report_make(&(struct report_input){ .request = request, .result = result });
	assert(analysis && json_is_true(json_object_get(analysis, "is_error")));
	assert(json_is_string(json_object_get(analysis, "category")));
	assert(json_is_string(json_object_get(analysis, "suggestion")));
	assert(json_object_size(analysis) == 10);
	markdown = report ? debug_report_markdown(report) : NULL;
	assert(markdown);
	json_decref(analysis);
	json_decref(report);
	json_decref(request);
	json_decref(result);
	return 0;
}
