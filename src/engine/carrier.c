/* SPDX-License-Identifier: Apache-2.0 */
/* See carrier.h: the executor's functions under the names that every carrier has. */
#include "engine/carrier.h"

static int start_run(void *run, const struct executor_start_options *options, struct error *err)
{
	return executor_start(run, options, err);
}

static void discard_run(void *run)
{
	executor_discard(run);
}

static void kill_run(void *run, enum cause_kind cause)
{
	executor_kill(run, cause);
}

static ssize_t write_run(void *run, const void *bytes, size_t n)
{
	return executor_stdin_write(run, bytes, n);
}

static void close_run(void *run)
{
	executor_stdin_close(run);
}

static int signal_run(void *run, int signo)
{
	return executor_signal(run, signo);
}

static void resize_run(void *run, uint16_t rows, uint16_t columns)
{
	executor_resize(run, rows, columns);
}

const struct carrier executor_carrier = {
	.start = start_run,
	.discard = discard_run,
	.kill = kill_run,
	.stdin_write = write_run,
	.stdin_close = close_run,
	.signal = signal_run,
	.resize = resize_run,
};
