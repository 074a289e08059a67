/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension io.modelcontextprotocol/tasks: a call that takes long is answered with a task, whose result is asked for later.
 *
 * A task is an execution of the engine, and nothing else: its id names the tool and the execution ("execute_code.ex_…"), and
 * everything about it is read from the engine and its history. So a task outlives its connection and the daemon, a caller sees its
 * own ones only, and the bounds of executions are the bounds of tasks.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/timestamp.h"
#include "engine/engine.h"
#include "mcp/mcp-private.h"

enum {
	TASK_AFTER_MS = 2000, /* a call that has not ended by then becomes a task */
	TASK_POLL_MS = 500,   /* told to clients */
	TASK_TTL_MS =
		3600000, /* a task's result is kept at least that long, unless history is full */
	UTC_SIZE = 32,
};
#define TASKS_EXTENSION "io.modelcontextprotocol/tasks"

static bool knows_tasks(const struct mcp_call *call)
{
	return call->era == MCP_MODERN &&
	       json_object_get(json_object_get(mcp_call_able(call), "extensions"), TASKS_EXTENSION);
}

/* --- a call becomes a task --- */

static json_t *task_new(const char *id, const char *status, const char *created,
			const char *updated)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "taskId", id, "status", status,
			 "createdAt", created, "lastUpdatedAt", updated, "ttlMs", TASK_TTL_MS,
			 "pollIntervalMs", TASK_POLL_MS);
}

static void task_begin(struct mcp_call *call)
{
	struct execution *x = engine_find(call->mcp->options.engine, mcp_call_viewer(call),
					  call->task.execution);
	char id[MCP_TASK_ID], now[UTC_SIZE];
	struct error err = { 0 };
	json_t *task;

	/* The row is there before the client knows the id. */
	if (x && !execution_has_ended(x) && execution_keep(x, &err) == 0) {
		(void)snprintf(id, sizeof(id), "%s.%s", call->tool->name, call->task.execution);
		clock_format_utc(clock_realtime_ns(), now, sizeof(now));
		task = task_new(id, "working", now, now);
		if (task)
			(void)json_object_set_new(task, "resultType", json_string("task"));
		mcp_call_detach(call, task);
	}
	(void)execution_unref(x);
}

static int on_task_time(void *data, uint32_t events _unused_)
{
	task_begin(data);
	return 0;
}

void mcp_call_works_on(struct mcp_call *call, const char *execution)
{
	int64_t at_ns = clock_now_ns();

	(void)snprintf(call->task.execution, sizeof(call->task.execution), "%s", execution);
	if (!call->tool || !call->tool->recall || call->task.timer || !knows_tasks(call))
		return;
	if (!call->tool->is_long)
		at_ns += TASK_AFTER_MS * NS_PER_MS;
	/* Without a timer the call is answered when its work has ended. */
	(void)!loop_add_timer(call->mcp->options.loop, at_ns,
			      (struct handler){ on_task_time, call }, &call->task.timer);
}

/* --- tasks/… --- */

/* The task that a request names; false: the call is answered. */
struct task_place {
	const struct mcp_tool *tool;
	const char *id;	       /* as the client wrote it */
	const char *execution; /* a part of it */
};

static bool task_place(struct mcp_call *call, const char *id, struct task_place *ret)
{
	const char *dot = id ? strrchr(id, '.') : NULL;
	char name[MCP_TASK_ID] = "";

	if (dot && (size_t)(dot - id) < sizeof(name))
		(void)snprintf(name, sizeof(name), "%.*s", (int)(dot - id), id);
	*ret = (struct task_place){ name[0] ? mcp_tool_find(call->mcp, name) : NULL, id,
				    dot ? dot + 1 : NULL };
	return ret->tool && ret->tool->recall;
}

static void no_task(struct mcp_call *call)
{
	mcp_call_fail(call, MCP_INVALID_PARAMS, "Task not found", NULL);
}

static bool find_task(struct mcp_call *call, const json_t *params, struct task_place *ret)
{
	if (!knows_tasks(call)) {
		mcp_call_lacks(call, TASKS_EXTENSION,
			       json_pack("{s:{s:{}}}", "extensions", TASKS_EXTENSION));
		return false;
	}
	if (task_place(call, mcp_plain_text(json_object_get(params, "taskId")), ret))
		return true;
	no_task(call);
	return false;
}

/* What the engine says of the execution; NULL: the call is answered. */
static json_t *task_read(struct mcp_call *call, const struct task_place *place)
{
	struct error err = { 0 };
	json_t *tree = NULL;

	if (engine_get(call->mcp->options.engine, mcp_call_viewer(call), place->execution, &tree,
		       &err) == 0)
		return tree;
	if (err.code == ERROR_NOT_FOUND)
		no_task(call);
	else
		mcp_call_error(call, &err);
	return NULL;
}

/* It was made, and it last changed: at its end, or now. */
json_t *mcp_task_state(const char *id, const json_t *execution)
{
	const char *native = json_string_value(json_object_get(execution, "status"));
	const char *status = !native || strcmp(native, "queued") == 0 ||
					     strcmp(native, "running") == 0
				     ? "working"
			     : strcmp(native, "cancelled") == 0 ? "cancelled"
								: "completed";
	const char *created = json_string_value(json_object_get(execution, "created_at"));
	const json_t *duration = json_object_get(execution, "duration");
	char now[UTC_SIZE], ended[UTC_SIZE];
	int64_t at_ns;

	clock_format_utc(clock_realtime_ns(), now, sizeof(now));
	(void)snprintf(ended, sizeof(ended), "%s", now);
	if (created && strcmp(status, "working") != 0 && timestamp_parse(created, &at_ns) == 0)
		clock_format_utc(at_ns + (int64_t)(json_number_value(duration) * NS_PER_SEC), ended,
				 sizeof(ended));
	return task_new(id, status, created ? created : now, ended);
}

int mcp_answer_task_get(struct mcp_call *call, const json_t *params)
{
	json_auto_t *arguments = NULL;
	struct task_place place;
	json_t *execution, *task;

	if (!find_task(call, params, &place))
		return 0;
	execution = task_read(call, &place);
	if (!execution)
		return 0;
	task = mcp_task_state(place.id, execution);
	json_decref(execution);
	if (!task || strcmp(json_string_value(json_object_get(task, "status")), "completed") != 0) {
		mcp_call_result(call, task);
		return 0;
	}
	/* The tool makes the result, which goes into the task. */
	call->tool = place.tool;
	call->task.record = task;
	arguments = json_pack("{s:s}", "execution_id", place.execution);
	return arguments ? work_begin(call, arguments, place.tool->recall) : -ENOMEM;
}

json_t *mcp_task_wrap(struct mcp_call *call, json_t *result)
{
	json_t *task = TAKE_PTR(call->task.record);

	(void)json_object_set_new(result, "resultType", json_string("complete"));
	if (json_object_set_new(task, "result", result) == 0)
		return task;
	json_decref(task);
	return NULL;
}

json_t *mcp_task_fail(struct mcp_call *call, int code, const char *text, json_t *data)
{
	json_t *task = TAKE_PTR(call->task.record);

	(void)json_object_set_new(task, "status", json_string("failed"));
	(void)json_object_set_new(
		task, "error",
		json_pack("{s:i, s:s, s:o*}", "code", code, "message", text, "data", data));
	return task;
}

int mcp_answer_task_cancel(struct mcp_call *call, const json_t *params)
{
	struct task_place place;
	struct error err = { 0 };

	if (!find_task(call, params, &place))
		return 0;
	if (engine_cancel(call->mcp->options.engine, mcp_call_viewer(call), place.execution, &err) <
		    0 &&
	    err.code != ERROR_ENDED) {
		no_task(call);
		return 0;
	}
	mcp_call_result(call, json_object());
	return 0;
}

/* No task asks for input, so there is nothing to be updated. */
int mcp_answer_task_update(struct mcp_call *call, const json_t *params)
{
	struct task_place place;
	json_t *execution;

	if (!find_task(call, params, &place))
		return 0;
	execution = task_read(call, &place);
	if (execution)
		mcp_call_result(call, json_object());
	json_decref(execution);
	return 0;
}

/* --- for subscriptions --- */

const char *mcp_task_execution(struct mcp_call *call, const char *id)
{
	struct task_place place;

	return knows_tasks(call) && task_place(call, id, &place) ? place.execution : NULL;
}
