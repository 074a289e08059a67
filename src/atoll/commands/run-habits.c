/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that people know from `docker run`. Those that mean the same here are accepted, and those that Atoll has another way for are
 * answered with that way. The help lists neither.
 */
#include "atoll/commands/cmd-run.h"

#include <string.h>

static int accept_habit(void *data _unused_, const struct option *self _unused_,
			const char *value _unused_, struct error *err _unused_)
{
	return 0;
}

static const struct {
	const char *flag, *way;
} ways[] = {
	{ "--workdir", "a program starts in /sandbox; put its files there with --file DEST=SRC" },
	{ "--publish", "no port of a sandbox can be reached from outside" },
	{ "--detach", "start a daemon (atoll serve) and send the program to POST /v1/executions" },
	{ "--user", "every program is user 1000 of its own sandbox" },
	{ "--name", "name a run with --label name=NAME" },
	{ "--entrypoint", "give the program as FILE or -c CODE, and its arguments after --" },
	{ "--privileged", "no program gets a privilege" },
	{ "--cap-add", "no program gets a capability" },
	{ "--gpus", "this version gives no GPU to programs" },
	{ "--hostname", "every sandbox has the same name, sandbox" },
	{ "--env-file", "give each variable with --env K=V" },
	{ "--tmpfs", "/tmp is in memory already; --disk SIZE bounds it" },
	{ "--shm-size", "/dev/shm is as large as --memory SIZE" },
	{ "--memory-swap", "give the swap space on top of --memory with --swap SIZE" },
	{ "--pids-limit", "the limit of processes and threads is --pids N" },
	{ "--ulimit",
	  "the limits are --open-files N, --file-size SIZE, --stack SIZE and --cpu-time TIME" },
	{ "--security-opt",
	  "the policy sets the confinement; `atoll doctor` shows what holds here" },
	{ "--platform", "programs run on this machine's processor" },
	{ "--pull", "there are no images to fetch; --image DIR shows a root file system of yours" },
};

static int answer_habit(void *data _unused_, const struct option *self, const char *value _unused_,
			struct error *err)
{
	size_t i = 0;

	while (strcmp(ways[i].flag, self->flag) != 0)
		i++;
	return error_set(err, ERROR_INPUT, EINVAL, "atoll run has no %s: %s", self->flag,
			 ways[i].way);
}

static const struct option habits[] = {
	/* A sandbox is always removed, has a pid 1 and no capability, and standard input is always passed on. */
	{ .flag = "--rm", .apply = accept_habit },
	{ .flag = "--init", .apply = accept_habit },
	{ .flag = "--cap-drop", .argument = "NAME", .apply = accept_habit },
	{ .flag = "--interactive", .letter = 'i', .apply = accept_habit },
	{ .flag = "--workdir", .letter = 'w', .argument = "DIR", .apply = answer_habit },
	{ .flag = "--volume", .letter = 'v', .argument = "SRC:DEST:ro", .apply = run_set_mount },
	{ .flag = "--publish", .letter = 'p', .argument = "PORTS", .apply = answer_habit },
	{ .flag = "--detach", .letter = 'd', .apply = answer_habit },
	{ .flag = "--user", .letter = 'u', .argument = "USER", .apply = answer_habit },
	{ .flag = "--name", .argument = "NAME", .apply = answer_habit },
	{ .flag = "--entrypoint", .argument = "PROGRAM", .apply = answer_habit },
	{ .flag = "--privileged", .apply = answer_habit },
	{ .flag = "--cap-add", .argument = "NAME", .apply = answer_habit },
	{ .flag = "--gpus", .argument = "GPUS", .apply = answer_habit },
	{ .flag = "--hostname", .argument = "NAME", .apply = answer_habit },
	{ .flag = "--env-file", .argument = "FILE", .apply = answer_habit },
	{ .flag = "--tmpfs", .argument = "DIR", .apply = answer_habit },
	{ .flag = "--shm-size", .argument = "SIZE", .apply = answer_habit },
	{ .flag = "--memory-swap", .argument = "SIZE", .apply = answer_habit },
	{ .flag = "--pids-limit", .argument = "N", .apply = answer_habit },
	{ .flag = "--ulimit", .argument = "NAME=N", .apply = answer_habit },
	{ .flag = "--security-opt", .argument = "WORD", .apply = answer_habit },
	{ .flag = "--platform", .argument = "NAME", .apply = answer_habit },
	{ .flag = "--pull", .argument = "WHEN", .apply = answer_habit },
	{ .flag = "--net", .argument = "MODE", .apply = run_set_network },
};

const struct option *run_habit(size_t i)
{
	return i < ARRAY_SIZE(habits) ? &habits[i] : NULL;
}
