/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Accept, Content-Type and Range. */
#pragma once

#include "base/span.h"

/*
 * The first of the NULL-terminated types ("application/json") with the highest weight in an Accept header.
 * Without the header (.data NULL) every type is accepted. NULL: the client accepts none of them.
 */
const char *accept_choose(struct span accept, const char *const *types);
/* Compares the media type of a Content-Type; parameters are ignored. */
bool content_type_is(struct span value, const char *type);

struct byte_range {
	int64_t from, length;
};
/*
 * One range of bytes of a resource of that size. 0: *ret is set. 1: no range that this server honours (absent,
 * another unit, several, malformed), so send the whole. -ERANGE: outside of the resource (416).
 */
int range_parse(struct span value, int64_t size, struct byte_range *ret) _must_check_;
