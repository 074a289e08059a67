/* SPDX-License-Identifier: Apache-2.0 */
/* Puts failures of a sandbox into words. The sandbox reports only an operation's index, an errno and a wait status. */
#include "broker/task.h"

#include "base/sys/probe.h"
#include "box/mover.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

void task_explain_crowd(struct error *err)
{
	struct rlimit files = { 0 };

	(void)getrlimit(RLIMIT_NOFILE, &files);
	*err = (struct error){ 0 };
	(void)error_set(
		err, ERROR_BUSY, EAGAIN,
		"the sandbox broker has too many runs for its limit of %llu open files: try again "
		"when one has ended, or raise the limit (ulimit -n, LimitNOFILE=)",
		(unsigned long long)files.rlim_cur);
}

int task_explain_start(int r, struct error *err)
{
	/* The kernel counts descriptors on their way for all processes of a user, against the limit of open files. */
	if (r == -ETOOMANYREFS) {
		task_explain_crowd(err);
		return -EAGAIN;
	}
	return error_set(err, ERROR_INTERNAL, -r, "the run cannot be started: %s", strerror(-r));
}

void task_explain_begun(struct task *task)
{
	if (task->end.failure.code != ERROR_BUSY || !task_ticket_is_taken(task))
		return;
	task->end.failure.code = ERROR_INTERNAL;
	task->end.failure.errnum = EMFILE;
}

static void explain_mount(const char *source, int errnum, struct error *err)
{
	static const struct {
		int errnum;
		const char *why;
	} table[] = {
		{ EACCES, "other users may not read it, and every program is one" },
		{ ELOOP, "its path leads through a symbolic link; give the path that it leads to" },
		{ ENOTDIR, "it is no directory; bring a file with the request" },
		{ ENOENT, "it does not exist" },
		{ EINVAL, "a file system is mounted below it" },
		{ EOPNOTSUPP, "this host has no overlay; `atoll doctor` says why" },
	};
	const char *why = strerror(errnum);

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].errnum == errnum)
			why = table[i].why;
	(void)error_set(err, ERROR_INPUT, errnum, "mounts: %s cannot be shown: %s", source, why);
}

/* Of making a copy. False: it failed as any sandbox may. */
static bool explain_copy(const struct report *rep, struct error *err)
{
	bool moving = strcmp(rep->step, MOVER_MOVE_STEP) == 0;

	if (rep->errnum == ESRCH || rep->errnum == ECHILD || (moving && rep->errnum == EPIPE))
		(void)error_set(err, ERROR_CONFLICT, rep->errnum, "%s",
				moving ? MOVER_COPY_ENDED : MOVER_PARENT_ENDED);
	else if (moving)
		/* The copy is the program's, and takes part only by waiting. */
		(void)error_set(err, ERROR_CONFLICT, rep->errnum,
				"a copy of the session cannot be moved into its sandbox: %s; the "
				"program changed it meanwhile, or this host forbids to trace it",
				strerror(rep->errnum));
	return err->code != ERROR_NONE;
}

void task_explain_failure(const struct task *task, const struct report *rep, struct error *err)
{
	const struct host_facts *facts = &task->broker->host.facts;
	const struct plan_view *v = &task->plan.view;
	const struct op *op = rep->step[0] || rep->stage >= v->n_ops ? NULL : &v->ops[rep->stage];

	if (task->copied_from && explain_copy(rep, err))
		return;
	if (op && op->kind == OP_FILE && (rep->errnum == ENOSPC || rep->errnum == EDQUOT))
		(void)error_set(
			err, ERROR_INPUT, ENOSPC,
			"the given files do not fit the disk limit; raise --disk or --files");
	else if (op && op->kind == OP_FILE)
		(void)error_set(err, ERROR_INPUT, rep->errnum, "the file %s cannot be placed: %s",
				op_b(v, op), strerror(rep->errnum));
	else if (op && op->kind == OP_REQUIRE)
		(void)error_set(err, ERROR_POLICY, rep->errnum,
				"a layer that the policy requires did not come about on this host; "
				"`atoll doctor` names it and the fix");
	else if (op && op->flags & OP_WRITABLE &&
		 (rep->errnum == EINVAL || rep->errnum == EOPNOTSUPP))
		(void)error_set(
			err, ERROR_POLICY, rep->errnum,
			"writable_root: the file system of %s does not support it (idmapped "
			"mounts); leave it out, or keep the root on ext4, xfs or btrfs",
			op_a(v, op));
	else if (op && op->kind == OP_WORKSPACE && rep->errnum == EACCES && facts->uid == 0)
		(void)error_set(
			err, ERROR_POLICY, rep->errnum,
			"a workspace takes CAP_SYS_ADMIN and CAP_SYS_PTRACE when root starts "
			"Atoll: give it both, or start it as an ordinary user");
	else if (op && op->flags & OP_EXACT)
		explain_mount(op_a(v, op), rep->errnum, err);
	else if (op && op->kind == OP_SHOW)
		(void)error_set(err, ERROR_INPUT, rep->errnum,
				"%s cannot be shown to the program: %s", op_a(v, op),
				strerror(rep->errnum));
	else if (rep->errnum == EPERM && facts->filtered)
		(void)error_set(err, ERROR_POLICY, rep->errnum,
				"the sandbox cannot be prepared (%s): " PROBE_REFUSED "%s",
				op ? op_table[op->kind].name : rep->step,
				host_has_minimal(facts) ? MINIMAL_HINT : "");
	else
		(void)error_set(err, ERROR_INTERNAL, rep->errnum,
				"the sandbox cannot be prepared (%s: %s); see: atoll doctor",
				op ? op_table[op->kind].name : rep->step, strerror(rep->errnum));
}

void task_explain_death(struct task *task, int wait_status)
{
	sandbox_usage(task->sandbox, &task->usage.total);
	usage_subtract(&task->usage.total, &task->usage.ahead);
	if (task->state == TASK_PREPARING && task->usage.total.oom_kills > 0)
		(void)error_set(&task->end.failure, ERROR_INPUT, ENOMEM,
				"the given files do not fit the memory limit; raise --memory");
	else if (task->state == TASK_PREPARING && task->copied_from)
		(void)error_set(&task->end.failure, ERROR_CONFLICT, ECHILD, MOVER_PARENT_ENDED);
	else if (task->state == TASK_PREPARING)
		(void)error_set(&task->end.failure, ERROR_INTERNAL, ECHILD,
				"the sandbox died while it was prepared; see: atoll doctor");
	else if (!WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != SIGKILL)
		/* A program can cause a SIGKILL of pid 1, by using up its memory; any other death is atoll's fault. */
		(void)error_set(&task->end.failure, ERROR_INTERNAL, ECHILD,
				"the sandbox's init ended before its time (wait status %d)",
				wait_status);
	else if (task->usage.total.oom_kills == 0 && !task->end.doomed)
		/* No process of the sandbox can kill pid 1: a process of the host did. */
		task->end.killed_for = CAUSE_INTERRUPTED;
}
