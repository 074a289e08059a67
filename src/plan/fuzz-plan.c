/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the plan decoder: an accepted plan must be printable without reading outside of the given bytes, and one without namespaces
 * makes, and lets the program write, nothing outside of its place.
 */
#include "plan/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool leaves(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) != 0 || (path[n] != '/' && path[n] != '\0') ||
	       strstr(path, "/..") || strstr(path, "//");
}

static void check_place(const struct plan_view *v)
{
	char top[64];

	(void)snprintf(top, sizeof(top), PLACE_DIR "/%lld", (long long)v->ops[0].value);
	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];
		const bool writes = op->kind == OP_PLACE || op->kind == OP_DIR ||
				    op->kind == OP_FILE ||
				    (op->kind == OP_LANDLOCK && op->value & ACCESS_WRITE);

		if (writes && leaves(op_b(v, op), top))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const sources[] = { "/usr", NULL };
	const struct plan_ceilings ceilings = { .sources = sources, .places = true };
	_cleanup_buf_ struct buf out = { 0 };
	struct plan_view v;

	buf_init(&out, 64 << 20);
	if (plan_decode(data, size, &v, NULL) < 0)
		return 0;
	if (plan_print(&v, &out) < 0)
		return 0;
	if (v.n_ops > 0 && v.ops[0].kind == OP_PLACE)
		check_place(&v);
	(void)!plan_check(&v, &ceilings, NULL);
	return 0;
}
