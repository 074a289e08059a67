/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the plan decoder: an accepted plan must be printable without reading outside of the given bytes. */
#include "plan/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const sources[] = { "/usr", NULL };
	const struct plan_ceilings ceilings = { .sources = sources };
	_cleanup_buf_ struct buf out = { 0 };
	struct plan_view v;

	buf_init(&out, 64 << 20);
	if (plan_decode(data, size, &v, NULL) < 0)
		return 0;
	if (plan_print(&v, &out) < 0)
		return 0;
	(void)!plan_check(&v, &ceilings, NULL);
	return 0;
}
