/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `eval`: the language's session runner is the program, and the caller's code is its only execution. The runner gets the code over a
 * channel, answers with value, outputs and error, and ends with the code's exit code when the channel is closed. So the end of the
 * process, its usage and its limits are those of every run.
 */
#include "run/run.h"

#include "base/fd.h"

#include <stdio.h>
#include <string.h>

enum { SESSION_RUNNER_MAX = 256 << 10 };

int session_runner(struct atoll *a, const struct language *lang, struct buf *ret, struct error *err)
{
	buf_init(ret, SESSION_RUNNER_MAX);
	for (const char **name = lang->session; *name; name++) {
		struct span text = { 0 };
		int r = registry_runner(a->registry, *name, &text);

		if (r >= 0)
			r = buf_append(ret, text.data, text.len);
		if (r < 0)
			return error_set(err, ERROR_INTERNAL, -r, "runners/%s cannot be read: %s",
					 *name, strerror(-r));
	}
	return 0;
}

int flow_put_runner(struct local_run *run, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	const char *dot = strrchr(run->source, '.');
	char *kept, *name;
	int r = session_runner(run->atoll, run->language, &text, err);

	if (r < 0)
		return r;
	kept = arena_strndup(&run->memory, text.data, text.len);
	name = arena_alloc(&run->memory, sizeof(run->source));
	if (!kept || !name)
		return error_oom(err);
	(void)snprintf(name, sizeof(run->source), FLOW_RUNNER "%.32s", dot ? dot : "");
	for (size_t i = 0; i < run->n_files; i++)
		if (strcmp(run->files[i].path, run->source) == 0) {
			run->files[i].path = name;
			run->files[i].data = (struct span){ kept, text.len };
		}
	(void)snprintf(run->source, sizeof(run->source), "%s", name);
	return 0;
}

static int send_code(struct flow_eval *e)
{
	struct local_run *run = e->run;
	json_t *imports = (json_t *)(uintptr_t)run->policy->imports;
	json_t *rules = imports ? json_pack("{s:O}", "imports", imports) : NULL;
	int64_t most = MIN(run->decision.limits.output_total_bytes, (int64_t)EVALUATION_VALUE_MAX);
	json_t *line = json_pack("{s:s, s:i, s:I, s:o, s:o*, s:s%}", "op", "run", "n", 1,
				 "value_most", (json_int_t)most, "file",
				 json_sprintf(SANDBOX_WORK "/%s", e->file), "rules", rules, "code",
				 run->code.data, run->code.len);
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	int r = text ? channel_send(&e->channel, (struct span){ text, strlen(text) }) : -ENOMEM;

	json_decref(line);
	free(text);
	return r;
}

static void take_rich(struct flow_eval *e, const json_t *line, size_t bytes)
{
	json_t *output = evaluation_add(&e->answer, line, bytes);

	if (output)
		(void)run_observer_tell(&e->run->observer,
					&(struct run_event){ RUN_RICH, .body = output });
}

static void on_eval_message(void *data, void *message, size_t bytes)
{
	json_t *line = message;
	struct flow_eval *e = data;
	const char *op = json_string_value(json_object_get(line, "op"));

	if (op && strcmp(op, "ready") == 0 && !e->sent) {
		e->sent = true;
		if (send_code(e) < 0)
			channel_close(&e->channel);
	} else if (op && strcmp(op, "output") == 0) {
		take_rich(e, line, bytes);
	} else if (op && strcmp(op, "value") == 0) {
		evaluation_piece(&e->answer, line, e->run->decision.limits.output_total_bytes,
				 &e->run->observer);
	} else if (op && strcmp(op, "done") == 0 && e->sent) {
		evaluation_end(&e->answer, line, bytes);
		channel_close(&e->channel);
	}
}

/* The end of the process says the rest. */
static void on_eval_closed(void *data, int r)
{
	(void)data;
	(void)r;
}

int flow_eval_begin(struct flow_eval *e, struct local_run *run, struct error *err)
{
	const struct channel_listener listener = { e, evaluation_read, evaluation_drop,
						   on_eval_message, on_eval_closed };
	int r;

	e->run = run;
	(void)snprintf(e->file, sizeof(e->file), "%s", run->source);
	r = channel_open(&e->channel, run->atoll->loop, listener, &run->channel_fd);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "no channel to the program: %s",
				 strerror(-r))
		     : 0;
}

void flow_eval_end(struct flow_eval *e)
{
	if (!e->run)
		return;
	channel_close(&e->channel);
	if (e->run->channel_fd > 0)
		(void)fd_close(e->run->channel_fd);
	e->run->channel_fd = 0;
	evaluation_done(&e->answer);
}
