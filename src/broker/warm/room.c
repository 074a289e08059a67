/* SPDX-License-Identifier: Apache-2.0 */
/* See room.h. */
#include "broker/warm/room.h"

#include "base/sys/kernel.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM_PIDS = 32, ROOM_CPU_MILLI = 1000 };

int room_new(struct sandbox_host *host, struct sandbox **ret)
{
	static const int64_t limits[_STAGE_LIMIT_MAX] = {
		[STAGE_MEMORY_BYTES] = INT64_C(1) << 30,
		[STAGE_CPU_MILLI] = ROOM_CPU_MILLI,
		[STAGE_PIDS] = ROOM_PIDS,
	};
	struct error err = { 0 };
	struct sandbox *room;
	int r = sandbox_reserve(host, &room, &err);

	if (r < 0)
		return r;
	r = sandbox_set_limits(room, limits, &err);
	if (r < 0)
		sandbox_destroy(room);
	else
		*ret = room;
	return r;
}

void room_clear(const struct sandbox *room)
{
	pid_t pid;

	/* If the uid is not reserved, another sandbox could have the same one. */
	if (!room->id_reserved)
		return;
	pid = fork();
	if (pid == 0) {
		/* For a user other than root, -1 means that user's processes only. */
		if (sys_setids(room->host_id) == 0)
			(void)kill(-1, SIGKILL);
		_exit(0);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}
