/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: the program's half, from the moment it waits to its last word. It runs in the sandbox, as the program's own
 * process: files it writes for the caller are charged to the sandbox, and limits it sets are its own.
 */
#include "zygote/agent.h"

#include "plan/wire.h"
#include "sys/kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct request { /* one LAUNCH */
	struct launch_record record;
	int fds[4]; /* plan, 0, 1, 2 */
	struct plan_view plan;
	void *base;
	size_t size;
	uint32_t op_index;
};

static int write_file(const struct request *req, const struct op *op)
{
	const struct timespec time = { .tv_sec = req->record.files_ns / NS_PER_SEC,
				       .tv_nsec = req->record.files_ns % NS_PER_SEC };
	int fd = sys_open(op_b(&req->plan, op), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, op->mode);
	int r;

	if (fd < 0)
		return fd;
	r = sys_write(fd, op_a(&req->plan, op), op->a.len);
	if (r == 0 && futimens(fd, (struct timespec[]){ time, time }) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}

static int make_dir(const struct plan_view *v, const struct op *op)
{
	int r = sys_mkdir(op_b(v, op), op->mode);

	return r == -EEXIST ? 0 : r;
}

/* What a plan says between its pivot and its stage and was not done when the sandbox was made. */
static int put_in_place(struct request *req)
{
	bool pivoted = false;
	int r = 0;

	(void)umask(0);
	for (req->op_index = 0; r == 0 && req->op_index < req->plan.n_ops; req->op_index++) {
		const struct op *op = &req->plan.ops[req->op_index];

		if (op->kind == OP_PIVOT)
			pivoted = true;
		else if (op->kind == OP_DIR && pivoted)
			r = make_dir(&req->plan, op);
		else if (op->kind == OP_FILE)
			r = write_file(req, op);
		else if (op->kind == OP_RLIMIT)
			r = sys_setrlimit((int)op->value, (uint64_t)op->value2);
		else if (op_table[op->kind].phase == PHASE_LAUNCH)
			break;
	}
	(void)umask(022);
	if (r < 0)
		req->op_index--;
	return r;
}

/* The words and variables of the stage: as text for the runner, and as environ. */
static int make_text(const struct plan_view *v)
{
	size_t size = sizeof("4294967295"), n_env = 0, len = 0;
	uint32_t n_args = 0;
	char **env, *text;

	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];

		n_args += op->kind == OP_ARG;
		n_env += op->kind == OP_ENV;
		if (op->kind == OP_ARG || op->kind == OP_ENV)
			size += op->a.len + 1;
	}
	/* From the heap, each by itself: Perl frees what it finds in environ. */
	env = calloc(n_env + 1, sizeof(*env));
	text = malloc(size);
	if (!env || !text)
		return -ENOMEM;
	len = (size_t)snprintf(text, size, "%u", n_args) + 1;
	for (uint16_t pass = OP_ARG; pass <= OP_ENV; pass++) {
		size_t k = 0;

		for (uint32_t i = 0; i < v->n_ops; i++) {
			const struct op *op = &v->ops[i];

			if (op->kind != pass)
				continue;
			memcpy(text + len, op_a(v, op), op->a.len + 1);
			if (pass == OP_ENV) {
				env[k] = strdup(text + len);
				if (!env[k++])
					return -ENOMEM;
			}
			len += op->a.len + 1;
		}
	}
	environ = env;
	agent.text = text;
	agent.text_len = len;
	return 0;
}

static void write_area(struct agent_area area, const struct plan_view *v, enum op_kind kind)
{
	size_t at = 0;

	if (!area.start)
		return;
	memset(area.start, 0, area.size);
	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];
		size_t room = area.size - 1 - at;

		if (op->kind != kind)
			continue;
		memcpy(area.start + at, op_a(v, op), MIN(op->a.len, room));
		at += MIN(op->a.len + 1, room);
	}
}

/* /proc/self/cmdline and environ are the program's from now on, as far as there is room. */
static void take_title(const struct plan_view *v)
{
	write_area(agent.words, v, OP_ARG);
	write_area(agent.variables, v, OP_ENV);
}

/*
 * Goes through the motions of a launch, so that the pages it touches are this process's own before anybody waits. What
 * it makes is thrown away.
 */
static void rehearse(void)
{
	static const char name[] = "/tmp/.rehearsal", word[] = "WORD=word";
	char data[sizeof(name) + sizeof(word)];
	const struct op ops[] = {
		{ .kind = OP_PIVOT },
		{ .kind = OP_FILE,
		  .mode = 0600,
		  .a = { sizeof(name), sizeof(word) - 1 },
		  .b = { 0, sizeof(name) - 1 } },
		{ .kind = OP_STAGE },
		{ .kind = OP_ARG, .a = { sizeof(name), sizeof(word) - 1 } },
		{ .kind = OP_ENV, .a = { sizeof(name), sizeof(word) - 1 } },
	};
	struct request req = { .plan = { ops, ARRAY_SIZE(ops), data, sizeof(data) } };
	char **kept_env = environ;

	memset(agent.plan, 0, sizeof(agent.plan));
	memcpy(data, name, sizeof(name));
	memcpy(data + sizeof(name), word, sizeof(word));
	(void)put_in_place(&req);
	(void)unlink(name);
	if (make_text(&req.plan) < 0)
		return;
	free(environ[0]);
	free(environ);
	free((char *)(uintptr_t)agent.text);
	environ = kept_env;
	agent.text = NULL;
	agent.text_len = 0;
}

static int take_stdio(const struct request *req)
{
	for (int i = 0; i < 3; i++) {
		int r = sys_dup2(req->fds[i + 1], i);

		if (r < 0)
			return r;
		(void)close(req->fds[i + 1]);
	}
	return 0;
}

static int receive(struct request *req)
{
	size_t n_fds = ARRAY_SIZE(req->fds);
	struct stat st;
	int r;
	ssize_t n = sys_recv_record(WARM_FD, &req->record, sizeof(req->record), req->fds, &n_fds);

	/* Closed: the broker has thrown this sandbox away. */
	if (n != (ssize_t)sizeof(req->record) || req->record.kind != PROGRAM_LAUNCH ||
	    n_fds != ARRAY_SIZE(req->fds))
		_exit(1);
	if (fstat(req->fds[0], &st) < 0)
		return -errno;
	req->size = (size_t)st.st_size;
	/* The usual plan is small: reading it takes less than mapping it. */
	if (req->size <= sizeof(agent.plan)) {
		req->base = agent.plan;
		r = pread(req->fds[0], req->base, req->size, 0) == (ssize_t)req->size ? 0 : -EIO;
	} else {
		req->base = mmap(NULL, req->size, PROT_READ, MAP_SHARED, req->fds[0], 0);
		r = req->base == MAP_FAILED ? -errno : 0;
	}
	(void)close(req->fds[0]);
	if (r < 0)
		return r;
	/* The broker has checked these bytes, and the seals keep them as they were. */
	req->plan = plan_trusted_view(req->base);
	return 0;
}

/* Of what is WARM_FD now; 0: nothing. */
static ino_t socket_inode(void)
{
	struct stat st;

	return fstat(WARM_FD, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static void launch(void)
{
	struct request req = { 0 };
	int r = receive(&req);

	if (r == 0)
		r = put_in_place(&req);
	if (r == 0)
		r = make_text(&req.plan);
	if (r == 0)
		r = take_stdio(&req);
	if (r == 0 && req.record.cpu_seconds) {
		struct rlimit cpu = { req.record.cpu_seconds, req.record.cpu_seconds + 1 };

		r = setrlimit(RLIMIT_CPU, &cpu) < 0 ? -errno : 0;
	}
	if (r < 0) {
		struct report failed = { .kind = REPORT_FAILED,
					 .stage = req.op_index,
					 .errnum = -r };

		(void)send(WARM_FD, &failed, sizeof(failed), MSG_NOSIGNAL);
		_exit(1);
	}
	take_title(&req.plan);
	/* Behind this nothing but an exit code is listened to. */
	if (send(WARM_FD, PROGRAM_LAUNCHED, 1, MSG_NOSIGNAL) < 0)
		_exit(1);
	if (req.base == agent.plan)
		memset(agent.plan, 0, req.size);
	else
		(void)munmap(req.base, req.size);
	(void)close(WARM_FILE_FD);
	agent.inode = socket_inode();
	agent.launched = true;
}

ssize_t agent_read(void *buf, size_t n)
{
	size_t len;

	if (!agent.asked) {
		agent.asked = true;
		if (n > 0)
			*(char *)buf = agent.cloner.warm_up ? 'w' : 'r';
		return MIN(n, (size_t)1);
	}
	if (!agent.launched) {
		if (agent.cloner.warm_up)
			rehearse();
		if (send(WARM_FD, PROGRAM_PARKED, 1, MSG_NOSIGNAL) < 0)
			_exit(1);
		launch();
	}
	len = MIN(n, agent.text_len - agent.text_at);
	memcpy(buf, agent.text + agent.text_at, len);
	agent.text_at += len;
	/* The end was read: from now on this is an ordinary descriptor. */
	if (len == 0)
		agent.text = NULL;
	return (ssize_t)len;
}

void agent_exit(int status, void *data)
{
	char word[PROGRAM_WORD_MAX + 1];
	int n;

	(void)data;
	if (agent.role != AGENT_IS_PROGRAM || !agent.launched || agent.pid != getpid() ||
	    socket_inode() != agent.inode)
		return;
	(void)fflush(NULL);
	n = snprintf(word, sizeof(word), "%d", status & 0xff);
	/*
	 * Whoever reads it ends us. Leaving by ourselves would keep the processor busy with taking our memory apart while
	 * the broker waits for it.
	 */
	if (send(WARM_FD, word, (size_t)n, MSG_NOSIGNAL) == n)
		(void)agent.real_read(WARM_FD, word, sizeof(word));
	_exit(status);
}

static bool is_ours(int fd)
{
	return fd == WARM_FD && agent.role == AGENT_IS_PROGRAM && (agent.text || !agent.launched) &&
	       agent.pid == getpid();
}

EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	if (is_ours(fd))
		return agent_read(buf, n);
	/* Before our constructor ran: others may read in theirs. */
	return agent.real_read ? agent.real_read(fd, buf, n) : syscall(SYS_read, fd, buf, n);
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
	if (n > size)
		__builtin_trap();
	return read(fd, buf, n);
}
