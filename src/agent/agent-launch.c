/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: the program's half, from its wait for a request to its exit code. This code runs in the sandbox,
 * as the program's own process: files it writes for the caller are charged to the sandbox, and limits it sets
 * are its own.
 */
#include "agent/agent.h"

#include "base/clock.h"
#include "base/sys/kernel.h"
#include "plan/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct launch_request { /* one LAUNCH */
	struct launch_record record;
	int fds[LAUNCH_FDS_MAX]; /* 0, 1, 2, ticket, a large plan */
	struct plan_view plan;
	void *base;
	size_t size;
	uint32_t op_index;
};

static int make_dir(const struct plan_view *v, const struct op *op)
{
	int r = sys_mkdir(op_b(v, op), op->mode);

	return r == -EEXIST ? 0 : r;
}

/*
 * Does the records ahead of the stage that were left out when the sandbox was made: directories behind the
 * pivot, files, late limits.
 */
static int put_in_place(struct launch_request *req)
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
			r = agent_write_file(&req->plan, op, req->record.files_ns);
		else if (rlimit_is_late(op))
			r = sys_setrlimit((int)op->value, (uint64_t)op->value2);
		else if (op_table[op->kind].phase == PHASE_LAUNCH)
			break;
	}
	(void)umask(022);
	if (r < 0)
		req->op_index--;
	return r;
}

/*
 * Allocates and frees pieces of the sizes that words and variables have, so that these will lie on pages that
 * this process owns.
 */
static void rehearse_text(void)
{
	char *pieces[8][6];

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		for (size_t k = 0; k < ARRAY_SIZE(pieces[i]); k++) {
			pieces[i][k] = malloc((i + 1) * 16 + 8);
			if (pieces[i][k])
				*(volatile char *)pieces[i][k] = 0;
		}
	for (size_t i = ARRAY_SIZE(pieces); i-- > 0;)
		for (size_t k = ARRAY_SIZE(pieces[i]); k-- > 0;)
			free(pieces[i][k]);
}

/* The program's own file, if it is small text and the plan puts nothing else into the work directory. */
static const struct op *only_file(const struct plan_view *v)
{
	static const char place[] = "/sandbox/";
	const struct op *found = NULL;
	uint32_t i = 0, n_words = 0;

	for (; i < v->n_ops && op_table[v->ops[i].kind].phase == PHASE_PREPARE; i++) {
		const struct op *op = &v->ops[i];

		if (op->b.len < sizeof(place) ||
		    strncmp(op_b(v, op), place, sizeof(place) - 1) != 0)
			continue;
		if (found || op->kind != OP_FILE || op->a.len > LAUNCH_PLAN_MAX ||
		    strchr(op_b(v, op) + sizeof(place) - 1, '/'))
			return NULL;
		found = op;
	}
	/* The second word of the command must be the file's name. */
	for (; found && i < v->n_ops; i++)
		if (v->ops[i].kind == OP_ARG && ++n_words == 2)
			return strcmp(op_a(v, &v->ops[i]), op_b(v, found)) == 0 &&
					       !memchr(op_a(v, found), '\0', found->a.len)
				       ? found
				       : NULL;
	return NULL;
}

/*
 * The kind of a descriptor: 'p' a pipe, 'n' the null device, 'o' another one. An empty file counts as the null
 * device: both read the same.
 */
static char kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 'o';
	if (S_ISFIFO(st.st_mode))
		return 'p';
	if (S_ISREG(st.st_mode) && st.st_size == 0)
		return 'n';
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) ? 'n' : 'o';
}

/*
 * For runners that ask for it (ATOLL_NOTE): the kinds of the three streams, in front of the words. The text of
 * only_file() follows the variables.
 */
static size_t write_note(const struct launch_request *req, char *text)
{
	if (!agent.noted)
		return 0;
	for (int i = 0; i < 3; i++)
		text[i] = kind_of(req->fds[i]);
	text[3] = '\0';
	return 4;
}

/*
 * Room for n variables. The list comes from the heap, and so does each variable, because Perl frees what it
 * finds in environ. calloc() would not reuse the pieces of the rehearsal. A runner with a note frees nothing,
 * so its variables lie in the text: in a heap that was shared until now, many new pieces would copy a page
 * each.
 */
static char **new_environ(size_t n)
{
	if (agent.noted && n < ARRAY_SIZE(agent.env_room))
		return agent.env_room;
	return malloc((n + 1) * sizeof(char *));
}

/* The words and variables of the stage: as text for the runner, and as environ. */
static int make_text(const struct launch_request *req)
{
	const struct plan_view *v = &req->plan;
	const struct op *script = agent.noted ? only_file(v) : NULL;
	size_t size = sizeof("npp\0"
			     "4294967295"),
	       n_env = 0, len;
	uint32_t n_args = 0;
	char **env, *text;

	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];

		n_args += op->kind == OP_ARG;
		n_env += op->kind == OP_ENV;
		if (op->kind == OP_ARG || op->kind == OP_ENV || op == script)
			size += op->a.len + 1;
	}
	env = new_environ(n_env);
	text = size <= sizeof(agent.text_room) ? agent.text_room : malloc(size);
	if (!env || !text)
		return -ENOMEM;
	env[n_env] = NULL;
	len = write_note(req, text);
	len += (size_t)snprintf(text + len, size - len, "%u", n_args) + 1;
	for (uint16_t pass = OP_ARG; pass <= OP_ENV; pass++) {
		size_t k = 0;

		for (uint32_t i = 0; i < v->n_ops; i++) {
			const struct op *op = &v->ops[i];

			if (op->kind != pass)
				continue;
			memcpy(text + len, op_a(v, op), op->a.len + 1);
			if (pass == OP_ENV) {
				env[k] = agent.noted ? text + len : strdup(text + len);
				if (!env[k++])
					return -ENOMEM;
			}
			len += op->a.len + 1;
		}
	}
	if (script) {
		memcpy(text + len, op_a(v, script), script->a.len);
		len += script->a.len;
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

/*
 * From now on /proc/self/cmdline and environ show the program's words and variables, as far as there is room.
 */
static void take_title(const struct plan_view *v)
{
	write_area(agent.words, v, OP_ARG);
	write_area(agent.variables, v, OP_ENV);
}

static void touch(struct agent_area area)
{
	for (volatile char *at = area.start; at && at < area.start + area.size; at += 4096)
		*at = *at;
}

/*
 * Rehearses a launch before a request comes, so that the pages that a launch touches are this process's own by
 * then. The results are thrown away.
 */
static void rehearse(void)
{
	static const char name[] = "/sandbox/.rehearsal", word[] = "WORD=word";
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
	struct launch_request req = { .plan = { ops, ARRAY_SIZE(ops), data, sizeof(data) } };
	char **kept_env = environ, **made;

	memset(agent.plan, 0, sizeof(agent.plan));
	memset(agent.text_room, 0, sizeof(agent.text_room));
	rehearse_text();
	touch(agent.words);
	touch(agent.variables);
	memcpy(data, name, sizeof(name));
	memcpy(data + sizeof(name), word, sizeof(word));
	(void)put_in_place(&req);
	(void)unlink(name);
	if (make_text(&req) < 0)
		return;
	made = environ;
	environ = kept_env;
	if (!agent.noted) {
		free(made[0]);
		free(made);
	}
	agent.text = NULL;
	agent.text_len = 0;
}

static int take_stdio(const struct launch_request *req)
{
	for (int i = 0; i < 3; i++) {
		int r = sys_dup2(req->fds[i], i);

		if (r < 0)
			return r;
		(void)close(req->fds[i]);
	}
	return 0;
}

static int receive_launch(struct launch_request *req)
{
	const struct record_parts parts = { &req->record, agent.plan, sizeof(req->record),
					    sizeof(agent.plan) };
	size_t n_fds = ARRAY_SIZE(req->fds);
	struct stat st;
	ssize_t n = sys_recv_parts(WARM_FD, &parts, req->fds, &n_fds);

	/* If the socket is closed, the broker has discarded this sandbox. */
	if (n < (ssize_t)sizeof(req->record) || req->record.kind != PROGRAM_LAUNCH)
		_exit(1);
	req->base = agent.plan;
	req->size = (size_t)n - sizeof(req->record);
	if (n_fds != LAUNCH_FDS_MAX - (req->size > 0) - req->record.no_input)
		_exit(1);
	if (req->record.no_input) {
		memmove(req->fds + 1, req->fds, n_fds * sizeof(req->fds[0]));
		req->fds[0] = sys_open("/dev/null", O_RDONLY, 0);
		if (req->fds[0] < 0)
			return req->fds[0];
	}
	if (req->size == 0) {
		if (fstat(req->fds[4], &st) < 0)
			return -errno;
		req->size = (size_t)st.st_size;
		req->base = mmap(NULL, req->size, PROT_READ, MAP_SHARED, req->fds[4], 0);
		if (req->base == MAP_FAILED)
			return -errno;
		(void)close(req->fds[4]);
	}
	/* The broker has checked these bytes. */
	req->plan = plan_trusted_view(req->base);
	return 0;
}

/* The inode of the socket at WARM_FD; 0: there is no socket. */
static ino_t socket_inode(void)
{
	struct stat st;

	return fstat(WARM_FD, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

void agent_forked(void)
{
	if (agent.inode != 0 && socket_inode() == agent.inode)
		(void)close(WARM_FD);
}

static void launch_program(void)
{
	struct launch_request req = { 0 };
	eventfd_t ticket;
	int r = receive_launch(&req);

	if (r == 0) {
		agent_settle_text(&req.plan);
		r = put_in_place(&req);
	}
	if (r == 0)
		r = make_text(&req);
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
	/*
	 * After this the broker accepts only an exit code from the program. If the ticket is taken, the front
	 * has sent this run to another broker.
	 */
	if (eventfd_read(req.fds[3], &ticket) < 0 || close(req.fds[3]) < 0)
		_exit(1);
	if (req.base == agent.plan)
		memset(agent.plan, 0, req.size);
	else
		(void)munmap(req.base, req.size);
	(void)close(WARM_FILE_FD);
	agent.inode = socket_inode();
	agent.launched = true;
}

static void park(void)
{
	const char *word = PROGRAM_PARKED;

	if (agent.cloner.warm_up) {
		rehearse();
		if (agent_make_text())
			word = PROGRAM_PARKED_TEXT;
	}
	if (send(WARM_FD, word, 1, MSG_NOSIGNAL) < 0)
		_exit(1);
	agent.parked = true;
}

ssize_t agent_read(void *buf, size_t n)
{
	size_t len;

	if (!agent.asked) {
		agent.asked = true;
		if (n > 0)
			*(char *)buf = agent.role == AGENT_IS_PROBE ? 'p'
				       : agent.cloner.warm_up	    ? 'w'
								    : 'r';
		return MIN(n, (size_t)1);
	}
	if (agent.role == AGENT_IS_PROBE)
		agent_probe_end();
	if (!agent.parked)
		park();
	if (!agent.launched)
		launch_program();
	len = MIN(n, agent.text_len - agent.text_at);
	memcpy(buf, agent.text + agent.text_at, len);
	agent.text_at += len;
	/*
	 * The runner has read the whole request (one with a note: less than it asked for). From now on WARM_FD
	 * is an ordinary descriptor.
	 */
	if (len == 0 || (agent.noted && len < n))
		agent.text = NULL;
	return (ssize_t)len;
}

void agent_exit(int status, void *data)
{
	char word[PROGRAM_WORD_MAX + 1];
	int n;

	(void)data;
	(void)fflush(NULL);
	if (agent.role != AGENT_IS_PROGRAM || !agent.launched || agent.pid != getpid() ||
	    socket_inode() != agent.inode)
		return;
	n = snprintf(word, sizeof(word), "%d", status & 0xff);
	/*
	 * The broker kills this process when it has read the code. If the process exited by itself, freeing its
	 * memory would keep the processor busy while the broker waits.
	 */
	if (send(WARM_FD, word, (size_t)n, MSG_NOSIGNAL) == n)
		(void)agent.real_read(WARM_FD, word, sizeof(word));
	_exit(status);
}

static bool is_ours(int fd)
{
	return fd == WARM_FD && agent.role != AGENT_IDLE && (agent.text || !agent.launched) &&
	       agent.pid == getpid();
}

EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	/* This is the agent's fork(): it returns in programs and in the probe. */
	if (is_ours(fd) && agent.role == AGENT_IS_ZYGOTE && fork() != 0)
		_exit(1);
	if (is_ours(fd))
		return agent_read(buf, n);
	/* A runner reads 0 bytes when it is about to end: libc's streams are flushed as by exit(). */
	if (fd == WARM_FD && n == 0)
		(void)fflush(NULL);
	/* Before the agent's constructor has run, other constructors may read. */
	return agent.real_read ? agent.real_read(fd, buf, n) : syscall(SYS_read, fd, buf, n);
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
	if (n > size)
		__builtin_trap();
	return read(fd, buf, n);
}
