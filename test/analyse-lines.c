/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter for the tests, not installed: each line of standard input is {"request", "result"}, each line
 * of standard output {"analysis", "report", "markdown"} of it.
 */
#include "run/analyse/analyse.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

enum { INPUT_BYTES_MAX = 512 << 20 };

static int answer_line(const char *line, size_t len)
{
	json_error_t error;
	json_t *in = json_loadb(line, len, 0, &error), *out;
	const json_t *request = json_object_get(in, "request");
	const json_t *result = json_object_get(in, "result");
	struct report_input input = { .request = request, .result = result };
	json_t *report = in ? debug_report_make(&input) : NULL;
	_cleanup_free_ char *markdown = report ? debug_report_markdown(report) : NULL;
	int r;

	out = json_pack("{s:o, s:o, s:s}", "analysis", in ? analysis_make(request, result) : NULL,
			"report", report, "markdown", markdown);
	r = out ? json_dumpf(out, stdout, JSON_COMPACT) : -1;
	if (r == 0)
		(void)putchar('\n');
	else
		(void)fprintf(stderr, "analyse-lines: %s\n", in ? "no memory" : error.text);
	json_decref(out);
	json_decref(in);
	return r;
}

int main(void)
{
	_cleanup_buf_ struct buf all = { .max = INPUT_BYTES_MAX };
	const char *at, *end;

	if (buf_read_fd(&all, 0) < 0)
		return 1;
	at = all.data;
	end = all.data + all.len;
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = stop ? (size_t)(stop - at) : (size_t)(end - at);

		if (n > 0 && answer_line(at, n) < 0)
			return 1;
		at += n + 1;
	}
	return 0;
}
