/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a task left behind. If the plan asks for files, they go to the peer. If the program failed, the size of the
 * largest file is measured, also in /tmp and in the workspace's upper layer: a file as large as file_size allows says why.
 */
#include "broker/task.h"

#include <string.h>

static int send_file(void *data, const struct collect_file *file)
{
	struct task *task = data;
	struct record rec = { .kind = RECORD_FILE, .job = task->job };

	memcpy(rec.file.path, file->path, strlen(file->path) + 1);
	rec.file.size = file->size;
	rec.file.mode = file->mode;
	return peer_send(task->peer, &rec, file->fd);
}

static int pass_over(void *data, const struct collect_file *file)
{
	(void)data;
	(void)file;
	return 0;
}

/* Measures the largest file only: `truncated` and `skipped` of this walk are dropped. */
static void measure_left_files(int dir_fd, struct collect_report *ret)
{
	const struct collect_bounds none = { 0 };
	struct collect_report seen;

	if (dir_fd >= 0 &&
	    collect_files(dir_fd, &none, (struct collector){ pass_over, NULL }, &seen) == 0)
		ret->largest_file_bytes = MAX(ret->largest_file_bytes, seen.largest_file_bytes);
}

void task_collect(struct task *task, struct collect_report *ret)
{
	const struct op *op = plan_find(&task->plan.view, OP_COLLECT, -1);

	if (op) {
		struct collect_bounds bounds = { op->value, op->value2 };

		if (collect_files(task->sandbox->files.work_fd, &bounds,
				  (struct collector){ send_file, task }, ret) < 0)
			ret->truncated = true;
	}
	if (!task->stages.wait_status)
		return;
	if (!op)
		measure_left_files(task->sandbox->files.work_fd, ret);
	measure_left_files(task->sandbox->files.tmp_fd, ret);
	measure_left_files(task->sandbox->files.upper_fd, ret);
}
