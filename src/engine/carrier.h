/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries an execution out. The engine asks for the same things of every carrier: the executor, which makes a sandbox for each
 * execution, or a session, in whose sandbox an execution is one turn. The run's events and its end come to the engine as
 * executor_start_options say.
 */
#pragma once

#include "run/executor.h"

struct carrier {
	/* As executor_start(). on_end comes later, exactly once, unless this fails. */
	int (*start)(void *run, const struct executor_start_options *options, struct error *err);
	void (*discard)(void *run); /* one that was not started */
	void (*kill)(void *run, enum cause_kind cause);
	ssize_t (*stdin_write)(void *run, const void *bytes, size_t n);
	void (*stdin_close)(void *run);
	int (*signal)(void *run, int signo);
	void (*resize)(void *run, uint16_t rows, uint16_t columns);
};

extern const struct carrier executor_carrier; /* runs are struct executor_run */
