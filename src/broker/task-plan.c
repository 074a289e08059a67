/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a run, as it comes from the front: bytes, which are copied, or a sealed file, or refused; checked against the broker's
 * own bounds.
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

/* A small one is read, which takes less than mapping it. */
static int load_plan(struct task *run, size_t size)
{
	struct plan_map *plan = &run->plan;
	void *base;
	int r;

	if (size <= PLAN_COPY_MAX) {
		r = make_plan_room(plan, size);
		if (r == 0 && pread(run->plan_fd, plan->base, size, 0) != (ssize_t)size)
			r = -EIO;
		return r;
	}
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, run->plan_fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	plan->base = base;
	plan->size = size;
	return 0;
}

static int open_plan(struct task *run, struct error *err)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(run->plan_fd, F_GET_SEALS), r;
	struct stat st;

	if (seals < 0 || (seals & needed) != needed)
		return error_set(err, ERROR_INPUT, EPERM, "the plan is refused: it is not sealed");
	if (fstat(run->plan_fd, &st) < 0 || st.st_size <= 0 || st.st_size > PLAN_BYTES_MAX)
		return error_set(err, ERROR_INPUT, EFBIG, "the plan is refused: bad size");
	r = load_plan(run, (size_t)st.st_size);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the plan cannot be read: %s",
				 strerror(-r));
	return 0;
}

void task_drop_plan(struct task *run)
{
	/* It is the tenant's: nothing of it stays behind in our memory. */
	if (run->plan.copied) {
		explicit_bzero(run->plan.base, run->plan.size);
		free(run->plan.base);
	} else if (run->plan.base)
		(void)munmap(run->plan.base, run->plan.size);
}

int task_seal_plan(struct task *run, struct error *err)
{
	if (run->plan_fd < 0)
		run->plan_fd = fd_sealed_memfd("atoll-plan", run->plan.base, run->plan.size);
	if (run->plan_fd < 0)
		return error_set(err, ERROR_INTERNAL, -run->plan_fd,
				 "the plan cannot be handed over: %s", strerror(-run->plan_fd));
	return 0;
}

int task_take_plan(struct task *run, struct span bytes, struct error *err)
{
	int r = 0;

	if (bytes.len == 0)
		r = open_plan(run, err);
	else if (make_plan_room(&run->plan, bytes.len) < 0)
		r = error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	else
		memcpy(run->plan.base, bytes.data, bytes.len);
	if (r < 0)
		return r;
	r = plan_decode(run->plan.base, run->plan.size, &run->plan.view, err);
	return r < 0 ? r : plan_check(&run->plan.view, &run->broker->ceilings, err);
}
