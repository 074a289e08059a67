/* SPDX-License-Identifier: Apache-2.0 */
/* See utf8-json.h. */
#include "spec/utf8-json.h"

json_t *utf8_to_json(const char *data, size_t len, bool *binary)
{
	_cleanup_buf_ struct buf clean = { .max = 3 * len }; /* a byte becomes three at worst */
	json_t *text;

	/* Most output is valid UTF-8, which json_stringn() checks. */
	text = json_stringn(len ? data : "", len);
	if (binary)
		*binary = !text;
	if (text)
		return text;
	if (utf8_replace(data, len, &clean) < 0)
		return NULL;
	return json_stringn(clean.data, clean.len);
}
