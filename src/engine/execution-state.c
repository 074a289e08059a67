/* SPDX-License-Identifier: Apache-2.0 */
/* See execution-state.h. */
#include "engine/execution-state.h"

#define TO(state) (1U << EXECUTION_##state)

static const unsigned moves[_EXECUTION_STATE_MAX] = {
	[EXECUTION_NEW] = TO(ACCEPTING) | TO(QUEUED) | TO(STARTING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_ACCEPTING] = TO(QUEUED) | TO(STARTING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_QUEUED] = TO(STARTING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_STARTING] = TO(QUEUED) | TO(PREPARING) | TO(RUNNING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_PREPARING] = TO(RUNNING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_RUNNING] = TO(OVERDUE) | TO(ENDING) | TO(ENDED),
	[EXECUTION_OVERDUE] = TO(ENDING) | TO(ENDED),
	[EXECUTION_ENDING] = TO(TOLD) | TO(ENDED),
	[EXECUTION_TOLD] = TO(ENDED),
};

bool execution_may_move(enum execution_state from, enum execution_state to)
{
	return moves[from] & (1U << to);
}
