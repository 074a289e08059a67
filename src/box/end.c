/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a sandbox ends: pid 1 dies, and the kernel kills the rest; then its resources are freed, or kept for
 * another sandbox.
 */
#include "box/sandbox.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/layers.h"
#include "box/net.h"
#include "box/spawn.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void kill_namespace(struct sandbox *sb)
{
	if (sb->program.pidfd >= 0)
		(void)sys_pidfd_send_signal(sb->program.pidfd, SIGKILL);
	if (sys_pidfd_send_signal(sb->pidfd, SIGKILL) < 0 && !sb->nesting.inside)
		(void)kill(sb->pid, SIGKILL);
	/* Dying needs a processor, and a process in the background may wait seconds for one. */
	if (sb->cgroup)
		sb->host->cgroups->set_background(sb->cgroup, false);
	/* The death of pid 1 kills the rest. It is faster if every process gets the signal at once. */
	if (sb->cgroup)
		(void)sb->host->cgroups->kill(sb->cgroup);
}

void sandbox_kill(struct sandbox *sb)
{
	if (sb->pid > 0)
		sb->kind->kill(sb);
}

int sandbox_die_behind(struct sandbox *sb)
{
	int r;

	/*
	 * Before the signal, which wakes the program: its death would take the processor that the reply needs.
	 */
	sb->host->cgroups->set_background(sb->cgroup, true);
	/* The program is killed directly, because pid 1's death kills the rest of its namespace only later. */
	r = sys_pidfd_send_signal(sb->program.pidfd, SIGKILL);
	if (r < 0) {
		sb->host->cgroups->set_background(sb->cgroup, false);
		return r;
	}
	(void)sys_pidfd_send_signal(sb->pidfd, SIGKILL);
	return 0;
}

void sandbox_die_at_once(struct sandbox *sb)
{
	sb->host->cgroups->set_background(sb->cgroup, false);
}

int sandbox_reap(struct sandbox *sb)
{
	int wait_status = 0;

	layers_reap(sb);
	/* A copy's pid 1 is another one's child, and it ends by itself only when it has reported the end of its program. */
	if (sb->pid > 0 && waitpid(sb->pid, &wait_status, 0) < 0 && sb->nesting.inside)
		wait_status = SIGKILL;
	sb->pid = 0;
	sb->kind->bury(sb);
	return wait_status;
}

int sandbox_vacate(struct sandbox *sb)
{
	int r = sb->kind->clear(sb);

	if (r < 0 || !sb->cgroup)
		return r;
	r = group_reuse_keep(sb);
	if (r != -EOPNOTSUPP)
		return r;
	r = sb->host->cgroups->remove(sb->cgroup);
	if (r == 0)
		sb->cgroup = NULL;
	return r;
}

void sandbox_free(struct sandbox *sb)
{
	if (!sb)
		return;
	sb->pidfd = fd_close(sb->pidfd);
	sb->control_fd = fd_close(sb->control_fd);
	sb->files.work_fd = fd_close(sb->files.work_fd);
	sb->files.upper_fd = fd_close(sb->files.upper_fd);
	sb->files.tmp_fd = fd_close(sb->files.tmp_fd);
	sb->terminal_fd = fd_close(sb->terminal_fd);
	sb->relay_fd = fd_close(sb->relay_fd);
	sb->files.mounts_fd = fd_close(sb->files.mounts_fd);
	sb->nesting.order_fd = fd_close(sb->nesting.order_fd);
	sb->program.fd = fd_close(sb->program.fd);
	sb->program.pidfd = fd_close(sb->program.pidfd);
	sb->kind->release(sb);
	/* If its cgroup is gone, no process is left in it. */
	net_give_back(sb->net, !sb->cgroup);
	free(sb);
}

void sandbox_destroy(struct sandbox *sb)
{
	if (!sb)
		return;
	if (sb->pid > 0) {
		sandbox_kill(sb);
		(void)waitpid(sb->pid, NULL, 0);
		sb->pid = 0;
		sb->kind->bury(sb);
	}
	/* Before pid 1 has said HELLO, only the mover is known. */
	layers_reap(sb);
	for (int tries = 0; sandbox_vacate(sb) == -EBUSY && tries < 2000; tries++)
		(void)usleep(1000);
	sandbox_free(sb);
}

/* The kernel has killed what was inside. */
static void bury_namespace(struct sandbox *sb _unused_)
{
}

static int clear_namespace(struct sandbox *sb _unused_)
{
	return 0;
}

const struct sandbox_kind sandbox_of_namespaces = {
	.has_userns = true,
	.has_tmpfs = true,
	.kill = kill_namespace,
	.bury = bury_namespace,
	.clear = clear_namespace,
	.release = sandbox_give_dev_back,
	.files_in_memory = scratch_bytes,
	.disk_left = scratch_left,
	.look = scratch_look,
};
