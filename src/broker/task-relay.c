/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay of a task whose program may reach other machines: a process outside of the sandbox that carries the program's connections
 * (src/box/egress). Each task has its own, so that what one program does to its relay no other program notices.
 *
 *   broker ──clone──▶ relay: gives up all rights, then executes the relay's program ◀──listening sockets── sandbox, before its program
 *   broker: every process of the sandbox is dead ──SIGKILL──▶ relay ──its death──▶ broker: NETWORK leaves, with the book, then DONE
 *
 * The relay writes what it does into the book (plan/relay-book.h), a shared file, at the moment it does it. So nothing is lost
 * however the relay ends; if it is killed early, the program's connections break and no new ones are made.
 */
#include "broker/task.h"

#include "base/fd.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"
#include "box/confine/confine.h"
#include "box/egress/egress-blob.h"
#include "plan/relay-book.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RELAY_FILES = 512, RELAY_MEMORY = 32 << 20, RELAY_PRIORITY = 5 };

struct relay_process {
	struct task *task;
	pid_t pid; /* 0: it was reaped */
	int pidfd, book_fd;
	struct source *death;
	bool awaited; /* the sandbox is dead, and the task ends when the relay is, too */
};

/* Names are resolved with these. */
static const struct confine_path relay_files[] = {
	{ "/etc/hosts", CONFINE_READ, false },
	{ "/etc/resolv.conf", CONFINE_READ, false },
	{ NULL, CONFINE_READ, false },
};

static int write_rules(const struct task *task, int fd)
{
	const struct plan_view *v = &task->plan.view;
	const struct op *relay = plan_find(v, OP_RELAY, -1), *op = relay + 1;
	struct relay_book *book = calloc(1, sizeof(*book));
	int r = book ? 0 : -ENOMEM;

	/* The pivot, which every plan has, ends the list. */
	for (; r == 0 && op->kind == OP_ALLOW; op++) {
		struct destination *rule = &book->rules[book->n_rules++];

		r = destination_parse(op_a(v, op), rule);
		if (r == 0 && (rule->port || op->value < 1))
			r = -EINVAL;
		rule->port = (uint16_t)op->value;
	}
	if (r == 0) {
		book->bytes_max = (uint64_t)relay->value;
		r = fd_write_all(fd, book, sizeof(*book));
	}
	free(book);
	return r;
}

static int make_book(const struct task *task)
{
	int fd = memfd_create("atoll-network", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : write_rules(task, fd);

	if (r < 0)
		(void)fd_close(fd);
	return r < 0 ? r : fd;
}

/* The broker's own copy of the program. */
static int program_fd(struct broker *b)
{
	if (b->relay_program_fd < 0)
		b->relay_program_fd = fd_sealed_program("egress", egress_blob,
							(size_t)(egress_blob_end - egress_blob));
	return b->relay_program_fd;
}

/* Moved to high numbers first: each could have the number that the other one needs. */
static int place_fds(int socket_fd, int book_fd)
{
	int r;

	socket_fd = sys_dup_above(socket_fd, 3);
	book_fd = sys_dup_above(book_fd, 3);
	if (socket_fd < 0 || book_fd < 0)
		return MIN(socket_fd, book_fd);
	r = sys_dup2(socket_fd, RELAY_FD_SOCKET);
	if (r >= 0)
		r = sys_dup2(book_fd, RELAY_FD_BOOK);
	return r < 0 ? r : sys_cloexec_from(RELAY_FD_BOOK + 1);
}

/* As the sandbox's own user, which no other process outside has. */
static int give_up_rights(const struct sandbox *sb)
{
	int r = setpriority(PRIO_PROCESS, 0, RELAY_PRIORITY) < 0 ? -errno : 0;

	sys_default_signals();
	if (r == 0)
		r = sys_setrlimit(RLIMIT_NOFILE, RELAY_FILES);
	if (r == 0 && sb->host->facts.privileged)
		r = sys_setids(sb->host_id);
	/* After setids, which clears it. */
	return r < 0 ? r : sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
}

static int confine_relay(void)
{
	int r = confine_memory(RELAY_MEMORY);

	if (r == 0)
		r = confine_files(relay_files);
	/* Without Landlock, files are out of its user's reach only where permissions say so. */
	return r < 0 && r != -EOPNOTSUPP ? r : confine_enter(CONFINE_RELAY);
}

static _noreturn_ void relay_main(const struct relay_process *relay, int socket_fd, int exec_fd,
				  pid_t broker)
{
	static char name[] = "atoll-egress";
	char *const argv[] = { name, NULL }, *const envp[] = { NULL };
	const int keep[] = { socket_fd, relay->book_fd, exec_fd };
	int r;

	fault_role("relay");
	r = sys_close_others(keep, ARRAY_SIZE(keep));
	if (r == 0)
		r = give_up_rights(relay->task->sandbox);
	/* The broker died before its death could be a signal. */
	if (r == 0 && getppid() != broker)
		r = -ESRCH;
	if (r == 0)
		r = place_fds(socket_fd, relay->book_fd);
	if (r >= 0)
		r = confine_relay();
	if (r == 0)
		(void)sys_execveat(exec_fd, argv, envp);
	/* The sandbox's end of the socket breaks, and its preparation fails. */
	_exit(1);
}

static int on_relay_death(void *data, uint32_t events)
{
	struct relay_process *relay = data;

	(void)events;
	relay->death = source_free(relay->death);
	while (waitpid(relay->pid, NULL, 0) < 0 && errno == EINTR)
		;
	relay->pid = 0;
	return relay->awaited ? task_after_death(relay->task) : 0;
}

static int start_relay(struct relay_process *relay, int *ret_socket)
{
	struct task *task = relay->task;
	const struct clone_request req = { .cgroup_fd = -EBADF,
					   .no_clone3 = !task->broker->host.facts.calls.clone3 };
	const int exec_fd = program_fd(task->broker);
	_cleanup_close_ int near_end = -EBADF, far_end = -EBADF;
	int pair[2];
	const pid_t broker = getpid();
	pid_t pid;

	if (exec_fd < 0)
		return exec_fd;
	relay->book_fd = make_book(task);
	if (relay->book_fd < 0)
		return relay->book_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	near_end = pair[0];
	far_end = pair[1];
	pid = sys_clone(&req, &relay->pidfd);
	if (pid == 0)
		relay_main(relay, far_end, exec_fd, broker);
	if (pid < 0)
		return pid;
	relay->pid = pid;
	*ret_socket = TAKE_FD(near_end);
	return loop_add_fd(task->broker->loop, relay->pidfd, EPOLLIN,
			   (struct handler){ on_relay_death, relay }, &relay->death);
}

int task_relay_begin(struct task *task, struct error *err)
{
	struct relay_process *relay;
	int r;

	task_relay_free(task);
	if (!plan_find(&task->plan.view, OP_RELAY, -1))
		return 0;
	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return error_oom(err);
	*relay = (struct relay_process){ .task = task, .pidfd = -EBADF, .book_fd = -EBADF };
	task->relay = relay;
	r = start_relay(relay, &task->sandbox->relay_fd);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r,
				 "the relay for the program's network cannot be started: %s",
				 strerror(-r))
		     : 0;
}

bool task_relay_end(struct task *task)
{
	struct relay_process *relay = task->relay;

	if (!relay || relay->pid == 0)
		return false;
	(void)kill(relay->pid, SIGKILL);
	relay->awaited = true;
	return true;
}

void task_relay_report(struct task *task)
{
	struct record rec = { .kind = RECORD_NETWORK };

	/* The relay is dead: the front reads what nothing can change any more. */
	if (task->relay && task->relay->pid == 0 &&
	    fcntl(task->relay->book_fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		(void)task_send(task, &rec, task->relay->book_fd);
}

void task_relay_free(struct task *task)
{
	struct relay_process *relay = TAKE_PTR(task->relay);

	if (!relay)
		return;
	relay->death = source_free(relay->death);
	if (relay->pid > 0) {
		(void)kill(relay->pid, SIGKILL);
		while (waitpid(relay->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)fd_close(relay->pidfd);
	(void)fd_close(relay->book_fd);
	free(relay);
}
