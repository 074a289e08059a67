/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a task. The peer sends it as bytes, which are copied, or as a sealed file; an unsealed file is refused. Every plan is
 * checked against the broker's own bounds.
 */
#include "broker/task.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLAN_COPY_MAX = 64 << 10 };

static int make_plan_room(struct plan_map *plan, size_t size)
{
	plan->base = malloc(size);
	if (!plan->base)
		return -ENOMEM;
	plan->copied = true;
	plan->size = size;
	return 0;
}

/* A small plan is read, which is faster than mapping it. */
static int load_plan(struct task *task, size_t size)
{
	struct plan_map *plan = &task->plan;
	void *base;
	int r;

	if (size <= PLAN_COPY_MAX) {
		r = make_plan_room(plan, size);
		if (r == 0 && pread(task->plan_fd, plan->base, size, 0) != (ssize_t)size)
			r = -EIO;
		return r;
	}
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, task->plan_fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	plan->base = base;
	plan->size = size;
	return 0;
}

static int open_plan(struct task *task, struct error *err)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(task->plan_fd, F_GET_SEALS), r;
	struct stat st;

	if (seals < 0 || (seals & needed) != needed)
		return error_set(err, ERROR_INPUT, EPERM, "the plan is refused: it is not sealed");
	if (fstat(task->plan_fd, &st) < 0 || st.st_size <= 0 || st.st_size > PLAN_BYTES_MAX)
		return error_set(err, ERROR_INPUT, EFBIG, "the plan is refused: bad size");
	r = load_plan(task, (size_t)st.st_size);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the plan cannot be read: %s",
				 strerror(-r));
	return 0;
}

void task_drop_plan(struct task *task)
{
	/* The plan holds the tenant's data: no copy may stay in the broker's memory. */
	if (task->plan.copied) {
		explicit_bzero(task->plan.base, task->plan.size);
		free(task->plan.base);
	} else if (task->plan.base)
		(void)munmap(task->plan.base, task->plan.size);
}

int task_seal_plan(struct task *task, struct error *err)
{
	if (task->plan_fd < 0)
		task->plan_fd = fd_sealed_memfd("atoll-plan", task->plan.base, task->plan.size);
	if (task->plan_fd < 0)
		return error_set(err, ERROR_INTERNAL, -task->plan_fd,
				 "the plan cannot be handed over: %s", strerror(-task->plan_fd));
	return 0;
}

int task_take_plan(struct task *task, struct span bytes, struct error *err)
{
	int r = 0;

	if (bytes.len == 0)
		r = open_plan(task, err);
	else if (make_plan_room(&task->plan, bytes.len) < 0)
		r = error_oom(err);
	else
		memcpy(task->plan.base, bytes.data, bytes.len);
	if (r < 0)
		return r;
	r = plan_decode(task->plan.base, task->plan.size, &task->plan.view, err);
	return r < 0 ? r : plan_check(&task->plan.view, &task->broker->ceilings, err);
}
