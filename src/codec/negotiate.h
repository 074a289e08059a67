/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks for in Accept and Range. */
#pragma once

#include "base/span.h"

/*
 * The first of the NULL-terminated types ("application/json") that has the highest weight in an Accept
 * header. No header (.data NULL) takes anything. NULL: the client takes none of them.
 */
const char *accept_choose(struct span accept, const char *const *types);
/* The media type of a Content-Type, parameters aside. */
bool content_type_is(struct span value, const char *type);

struct byte_range {
	int64_t from, length;
};
/*
 * One range of bytes of a thing of that size. 0: there is one; 1: there is none that we honour (absent,
 * another unit, several, malformed), so the whole is due; -ERANGE: it lies outside (416).
 */
int range_parse(struct span value, int64_t size, struct byte_range *ret) _must_check_;
