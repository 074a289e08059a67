/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in a plan that plan_check() has accepted. */
#include "plan/plan.h"

#include "plan/build.h"

#include <string.h>

const char *const place_dirs[_PLACE_DIR_MAX] = {
	[PLACE_WORK] = SANDBOX_WORK,
	[PLACE_TMP] = "/tmp",
	[PLACE_BUILD] = SANDBOX_BUILD,
};

const struct op *plan_find(const struct plan_view *v, enum op_kind kind, int stage)
{
	int current = -1;

	for (uint32_t i = 0; i < v->n_ops; i++) {
		if (v->ops[i].kind == OP_STAGE)
			current++;
		if (v->ops[i].kind == kind && (stage < 0 || stage == current))
			return &v->ops[i];
	}
	return NULL;
}

bool plan_has_terminal(const struct plan_view *v)
{
	const struct op *op = plan_find(v, OP_DEVPTS, -1);

	return op && op->value != 0;
}

uint32_t plan_stage_count(const struct plan_view *v)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < v->n_ops; i++)
		count += v->ops[i].kind == OP_STAGE;
	return count;
}

void plan_stage_limits(const struct plan_view *v, uint32_t stage, int64_t ret[_STAGE_LIMIT_MAX])
{
	uint32_t current = UINT32_MAX;

	memset(ret, 0, sizeof(int64_t) * _STAGE_LIMIT_MAX);
	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];

		if (op->kind == OP_STAGE)
			current++;
		else if (op->kind == OP_LIMIT && current == stage)
			ret[op->value] = op->value2;
	}
}
