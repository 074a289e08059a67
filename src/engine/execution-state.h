/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of an execution and the moves between them.
 *
 *   NEW ──▶ ACCEPTING ──▶ QUEUED ◀──▶ STARTING ──▶ RUNNING ──▶ ENDING ──▶ TOLD ──▶ ENDED
 *    │                    ▲              ▲  │       ▲    │       ▲
 *    └────────────────────┴──────────────┘  └▶ PREPARING └▶ OVERDUE
 *      a caller waits: no row comes first
 *
 * A turn of a session needs no place, so it goes from ACCEPTING to STARTING.
 *
 * Every state before ENDING may also go to ENDING: refused, cancelled, out of time, interrupted. Every state may also go to ENDED:
 * a job whose row cannot be written, the end of the engine, and NEW for an execution that is read back from the history.
 *
 * The engine holds a reference, and has the execution in its table, from NEW to ENDED, both excluded.
 */
#pragma once

#include <stdbool.h>

enum execution_state {
	EXECUTION_NEW,	     /* known to its submitter only */
	EXECUTION_ACCEPTING, /* its row is written with the next round */
	EXECUTION_QUEUED,    /* waits for a place */
	EXECUTION_STARTING,  /* has a place; of a job, the row says so after this round */
	EXECUTION_PREPARING, /* a fiber reads its request again and judges it */
	EXECUTION_RUNNING,   /* has a run of the executor */
	EXECUTION_OVERDUE, /* runs on, to be compiled; its caller was told that its time is over */
	EXECUTION_ENDING,  /* has come to its end, which is written with the next round */
	EXECUTION_TOLD,	 /* its caller and watchers have the result, which may wait for the disk */
	EXECUTION_ENDED, /* on record, or of no account */
	_EXECUTION_STATE_MAX,
};

bool execution_may_move(enum execution_state from, enum execution_state to);
