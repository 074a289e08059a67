/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: the caller's files. Nearly all requests bring one file, the program's text. When a program warms
 * up, the agent makes this file ahead: empty, with its first block. Making file and block takes as long as
 * compiling two lines; the request then only fills them. If a request brings no such text, the agent removes
 * the file.
 */
#include "agent/agent.h"

#include "agent/zygote-proto.h"
#include "base/clock.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MODE = 0644 };

bool agent_make_text(void)
{
	int fd;

	if (!agent.text_path)
		return false;
	fd = sys_open(agent.text_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, TEXT_MODE);
	if (fd < 0)
		return false;
	agent.text_fd = fd;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, TEXT_BLOCK) == 0)
		return true;
	agent_settle_text(NULL);
	return false;
}

/*
 * A file made ahead keeps its block even if the request's text is empty, but the broker expects no block of an
 * empty file. So the agent removes the file in this case, too.
 */
void agent_settle_text(const struct plan_view *v)
{
	for (uint32_t i = 0; v && agent.text_fd > 0 && i < v->n_ops; i++)
		if (v->ops[i].kind == OP_FILE && v->ops[i].a.len > 0 &&
		    strcmp(op_b(v, &v->ops[i]), agent.text_path) == 0)
			return;
	if (agent.text_fd > 0) {
		(void)close(agent.text_fd);
		(void)unlink(agent.text_path);
	}
	agent.text_fd = 0;
}

static int open_file(const char *path, uint32_t mode)
{
	int fd = agent.text_fd, r;

	if (fd <= 0 || strcmp(path, agent.text_path) != 0)
		return sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	agent.text_fd = 0;
	/* Making the file now would have changed the time of its directory, which is the current one. */
	(void)utimensat(AT_FDCWD, ".", NULL, 0);
	if (mode == TEXT_MODE || fchmod(fd, mode) == 0)
		return fd;
	r = -errno;
	(void)close(fd);
	return r;
}

int agent_write_file(const struct plan_view *v, const struct op *op, int64_t time_ns)
{
	const struct timespec time = { .tv_sec = time_ns / NS_PER_SEC,
				       .tv_nsec = time_ns % NS_PER_SEC };
	int fd = open_file(op_b(v, op), op->mode);
	int r;

	if (fd < 0)
		return fd;
	r = sys_write(fd, op_a(v, op), op->a.len);
	if (r == 0 && futimens(fd, (struct timespec[]){ time, time }) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}
