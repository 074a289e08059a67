/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: the caller's files. The one that nearly all requests bring, the program's text, is made before anybody waits:
 * empty, with its first block. Making both takes as long as compiling two lines, and whoever waits has only to have them
 * filled. A request that brings something else finds it gone.
 */
#include "warm/agent.h"

#include "base/clock.h"
#include "sys/kernel.h"
#include "warm/zygote-proto.h"

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

/* An empty one would keep its block, which the broker expects of none. */
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
	/* Its directory, where we are, would have been changed now. */
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
