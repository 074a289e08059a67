/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper that applies the changes of a task, and a broker that cannot watch a helper. The upper layer is made by hand: no
 * sandbox is made.
 */
#include "base/sys/kernel.h"
#include "box/spawn.h"
#include "broker/peer.h"
#include "broker/test-support.h"
#include "spec/change.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { TIMERS_MAX = 1 << 17 };

struct commit_fixture {
	struct broker broker;
	struct workspace_place places[2];
	struct task *task;
	struct plan plan;
	int fd; /* the front's own end */
	char top[32], root[64], applied[96];
	struct source *timers[TIMERS_MAX];
	size_t n_timers;
};

static int ignore(void *data, uint32_t events)
{
	(void)data;
	(void)events;
	return 0;
}

static int enter(void **state)
{
	struct commit_fixture *f = calloc(1, sizeof(*f));
	struct peer *peer;
	char upper[64], file[96];
	int pair[2];

	*state = f;
	if (!f || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	f->fd = pair[0];
	(void)snprintf(f->top, sizeof(f->top), "/tmp/atoll-task-commit-XXXXXX");
	if (!mkdtemp(f->top))
		return -1;
	(void)snprintf(f->root, sizeof(f->root), "%s/root", f->top);
	(void)snprintf(f->applied, sizeof(f->applied), "%s/w/file", f->root);
	(void)snprintf(upper, sizeof(upper), "%s/upper", f->top);
	(void)snprintf(file, sizeof(file), "%s/file", upper);
	if (mkdir(f->root, 0700) < 0 || mkdir(upper, 0700) < 0 || mkdir(file, 0700) < 0)
		return -1;
	f->places[0].path = f->root;
	f->broker.host.workspaces = f->places;
	f->broker.loop = loop_new();
	f->task = calloc(1, sizeof(*f->task));
	if (!f->broker.loop || !f->task || peer_new(&f->broker, pair[1], true, &peer) < 0)
		return -1;
	plan_init(&f->plan);
	add(&f->plan, (struct op){ .kind = OP_WORKSPACE }, "w", "/w");
	add(&f->plan, (struct op){ .kind = OP_COMMIT, .value = COMMIT_ALWAYS }, NULL, NULL);
	*f->task = (struct task){ .broker = &f->broker,
				  .peer = peer,
				  .plan.view = plan_as_view(&f->plan),
				  .state = TASK_COMMITTING,
				  .ticket_fd = -EBADF,
				  .plan_fd = -EBADF,
				  .streams.stdio = { -EBADF, -EBADF, -EBADF },
				  .workspace.changes_fd = -EBADF,
				  .end.killed_for = -1,
				  .sandbox = sandbox_new(&f->broker.host) };
	task_enlist(f->task);
	f->task->sandbox->files.upper_fd = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return peer_watch(peer, (struct handler){ ignore, NULL });
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int leave(void **state)
{
	struct commit_fixture *f = *state;
	int r;

	while (f->n_timers > 0)
		(void)source_free(f->timers[--f->n_timers]);
	while (f->broker.tasks)
		task_abandon(f->broker.tasks);
	committers_end(&f->broker);
	(void)peer_free(f->broker.peers);
	(void)loop_free(f->broker.loop);
	(void)fd_close(f->fd);
	plan_done(&f->plan);
	r = nftw(f->top, remove_one, 32, FTW_DEPTH | FTW_PHYS);
	free(f);
	return r;
}

static int stop(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

static void test_applied(void **state)
{
	struct commit_fixture *f = *state;
	struct source *answer = NULL;
	struct record done;
	size_t n_fds = 1;
	int list = -EBADF;

	assert_int_equal(loop_add_fd(f->broker.loop, f->fd, EPOLLIN,
				     (struct handler){ stop, f->broker.loop }, &answer),
			 0);
	assert_true(task_commit_begin(f->task));
	assert_int_equal(loop_run(f->broker.loop), 0);
	(void)source_free(answer);
	assert_int_equal(sys_recv_record(f->fd, &done, sizeof(done), &list, &n_fds), sizeof(done));
	(void)fd_close(list);
	assert_int_equal(done.kind, RECORD_DONE);
	assert_int_equal(done.done.commit.result, COMMIT_APPLIED);
	assert_int_equal(n_fds, 1);
	assert_int_equal(access(f->applied, F_OK), 0);
}

/* A helper that the broker cannot watch is not started: it would apply changes that the result calls lost. */
static void test_not_watched(void **state)
{
	struct commit_fixture *f = *state;
	int r = 0;

	while (f->n_timers < TIMERS_MAX && r == 0) {
		r = loop_add_timer(f->broker.loop, INT64_MAX, (struct handler){ ignore, NULL },
				   &f->timers[f->n_timers]);
		f->n_timers += r == 0;
	}
	assert_int_equal(r, -ENOSPC);
	assert_false(task_commit_begin(f->task));
	assert_int_equal(f->task->workspace.commit.result, COMMIT_BROKEN);
	assert_int_equal(f->task->workspace.commit.errnum, ENOSPC);
	assert_null(f->broker.committers);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(access(f->applied, F_OK), -1);
}

#define WITH_TASK(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TASK(test_applied),
		WITH_TASK(test_not_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
