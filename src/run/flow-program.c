/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own sandbox: described as a sandbox_spec, run, and turned into a result. If a request has
 * `stages`, they run in this sandbox instead (flow-build.c).
 */
#include "run/run.h"

#include "base/fd.h"
#include "base/utf8.h"
#include "plan/relay-book.h"
#include "run/analyse/analyse.h"
#include "run/analyse/network-words.h"
#include "run/retry.h"
#include "run/toolchain/data.h"
#include "spec/knob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The caller's files and the product of the compile stage, in one list. */
static int list_program_files(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	size_t n = run->n_files + run->product.n_files;
	struct build_file *files = arena_alloc(&run->memory, (n + 1) * sizeof(*files));

	if (!files)
		return error_oom(err);
	for (size_t i = 0; i < run->n_files; i++)
		files[i] = run->files[i];
	for (size_t i = 0; i < run->product.n_files; i++) {
		const struct request_file *f = &run->product.files[i];

		files[run->n_files + i] = (struct build_file){
			.base = SANDBOX_BUILD, .path = f->path, .data = f->data, .mode = f->mode
		};
	}
	in->files = files;
	in->n_files = n;
	return 0;
}

static int describe_language(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	const struct request *req = run->request;
	struct word_context c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));
	const char **argv = flow_run_words(run, &c, req->n_args);
	const char **env = flow_env(run, NULL, &c);
	size_t n = 0;

	if (!stage || !argv || !env)
		return error_oom(err);
	while (argv[n])
		n++;
	memcpy(argv + n, req->args, req->n_args * sizeof(char *));
	*stage = (struct stage_spec){
		.name = "run",
		.argv = argv,
		.env = env,
		.limits = &run->decision.limits,
		.judged = req->n_tests > 0,
	};
	in->stages = stage;
	in->n_stages = 1;
	in->warm = flow_warm(run, &c);
	return 0;
}

static int describe_prelude(struct local_run *run, struct sandbox_spec *in, struct error *err)
{
	const char *name = run->language ? run->language->prelude : NULL;
	struct word_context c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	struct span text;
	int r;

	if (!name)
		return 0;
	r = registry_runner(run->atoll->registry, name, &text);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "runners/%s cannot be read: %s", name,
				 strerror(-r));
	in->prelude = flow_expand(&run->memory, text.data, &c);
	return in->prelude ? 0 : error_oom(err);
}

int flow_describe(struct local_run *run, struct sandbox_spec *ret, struct error *err)
{
	struct sandbox_spec in = {
		.decision = &run->decision,
		.stdin_data = run->request->stdin_data,
		.caller_input = true,
		.live = true,
		.collect = flow_wants_files(run),
		.merge_stderr = run->request->merge_stderr,
		.build_scratch = flow_is_compiled(run) && run->language->warm.kind != WARMTH_NONE,
		.take_file = flow_take_file,
	};
	int r = flow_add_stage_files(run, err);

	if (r >= 0 && run->request->eval)
		r = flow_put_runner(run, err);
	if (r >= 0)
		r = list_program_files(run, &in, err);
	if (r < 0)
		return r;
	if (run->request->n_stages > 0)
		r = flow_describe_stages(run, &in, err);
	else if (run->request->invoke_method)
		r = flow_describe_invoke(run, &in, err);
	else
		r = describe_language(run, &in, err);
	if (r >= 0)
		r = describe_prelude(run, &in, err);
	if (r >= 0)
		*ret = in;
	return r;
}

int flow_add_stage(struct result *res, const struct result_stage *stage)
{
	struct result_stage *stages = reallocarray(res->stages, res->n_stages + 1, sizeof(*stages));

	if (!stages)
		return -ENOMEM;
	res->stages = stages;
	stages[res->n_stages++] = *stage;
	return 0;
}

void flow_isolation(struct local_run *run, const struct record_started *start)
{
	static const char *const cgroups[_CGROUP_KIND_MAX] = { "none", "v1", "v2" };
	static const char *const fronts[_FRONT_KIND_MAX] = { "caller", "confined", "partly",
							     "open" };
	static const char *const nets[] = {
		[NETWORK_OFF] = "off", [NETWORK_NONE] = "none", [NETWORK_ALLOW] = "allow"
	};
	const struct host_facts *facts = run->decision.facts;
	struct isolation *iso = &run->result->isolation;
	uint32_t missing = run->decision.missing | start->missing;
	bool is_minimal = run->policy->isolation == ISOLATION_MINIMAL;
	size_t n = 0;

	*iso = (struct isolation){
		.tier = is_minimal ? "minimal"
			: missing  ? "reduced"
				   : "full",
		.user = start->copy	     ? "shared with parent"
			: start->user_unique ? "unique"
					     : "shared",
		.cgroup = start->cgroup < _CGROUP_KIND_MAX ? cgroups[start->cgroup] : "none",
		.landlock = start->landlock_abi,
		.proc = start->proc && !is_minimal ? "pid" : "none",
		.net = nets[run->decision.network],
		.broker = facts->broker_open ? "open" : "confined",
		.front = fronts[facts->front],
	};
	(void)snprintf(iso->seccomp, sizeof(iso->seccomp), "%s", start->seccomp);
	for (int layer = 0; layer < _LAYER_MAX && n + 1 < ARRAY_SIZE(iso->missing); layer++)
		if (missing & (1U << layer))
			iso->missing[n++] = layer_name((enum layer)layer);
}

void flow_refine_suggestion(const struct local_run *run, struct span out, struct span err,
			    struct result_stage *stage)
{
	struct cause *cause = &stage->verdict.cause;
	const struct knob *k = cause->limit_key ? knob_find(cause->limit_key) : NULL;

	if (k)
		retry_refine(cause, &(struct retry_view){
					    .ceiling = decision_ceiling(&run->decision, k),
					    .code = run->code,
					    .out = out,
					    .err = err,
					    .cpu_us = stage->usage.user_us + stage->usage.system_us,
					    .wall_us = stage->duration_us });
}

static int fill_stages(struct local_run *run, const struct sandbox_spec *in,
		       const struct job_outcome *o)
{
	struct result *res = run->result;
	size_t n = MAX(MIN(o->n_stages, in->n_stages), (size_t)1);

	for (size_t i = 0; i < n; i++) {
		struct result_stage stage;
		int r;

		flow_stage(o, i, &in->stages[i], &stage);
		flow_refine_suggestion(run, (struct span){ res->out.text, res->out.len },
				       (struct span){ res->err.text, res->err.len }, &stage);
		r = flow_add_stage(res, &stage);
		if (r < 0)
			return r;
		res->duration_us += stage.duration_us;
		res->verdict = stage.verdict;
	}
	return 0;
}

/* It failed by itself. An exit code after a kill is not the program's own. */
static bool failed_by_itself(const struct verdict *v)
{
	return v->status == STATUS_ERROR || (v->status == STATUS_LIMIT && v->signal == 0 &&
					     v->exit_code != 124 && v->exit_code != 137);
}

static struct error_input error_input(const struct local_run *run, const char *stage,
				      const struct verdict *v, struct span words)
{
	return (struct error_input){
		.request = run->request->root,
		.language = run->language ? run->language->name : "bash",
		.stage = stage,
		.detail = v->cause.detail,
		.signal = v->signal,
		.words = words.data,
		.words_len = words.data ? words.len : 0,
	};
}

json_t *flow_error_in(const struct local_run *run, const char *stage, const struct verdict *v,
		      struct span words, char **suggestion)
{
	const struct error_input in = error_input(run, stage, v, words);

	return failed_by_itself(v) ? analysis_error(&in, suggestion) : NULL;
}

void flow_hear(struct local_run *run, struct span words, struct result_test *test)
{
	const struct error_input in = error_input(run, NULL, &test->run, words);
	struct result_stage stage = { .duration_us = test->duration_us, .usage = test->usage };

	if (test->verdict != TEST_ERROR && test->verdict != TEST_WRONG_ANSWER)
		return;
	switch (analysis_meaning(&in)) {
	case WORDS_NO_PROGRAM:
		test->verdict = TEST_COMPILE_ERROR;
		break;
	case WORDS_NO_MEMORY:
		test->verdict = TEST_LIMIT;
		verdict_no_memory(&test->run, &test->usage, &run->decision.limits);
		stage.verdict = test->run;
		flow_refine_suggestion(run, words, words, &stage);
		test->run = stage.verdict;
		break;
	case WORDS_PLAIN:
		break;
	}
}

void flow_find_error(struct local_run *run, const char *stage)
{
	struct result *res = run->result;
	const struct result_stream *s = &res->err;

	if (res->error)
		return;
	/* Some compilers print errors on standard output; a merged stream is there, too. */
	if (s->len == 0 && ((stage && strncmp(stage, "compile", strlen("compile")) == 0) ||
			    run->request->merge_stderr))
		s = &res->out;
	/* After a limit, its cause says what to do. */
	res->error = flow_error_in(run, stage, &res->verdict, (struct span){ s->text, s->len },
				   res->verdict.status == STATUS_ERROR ? &res->suggestion : NULL);
}

static int fill_result(struct local_run *run, const struct sandbox_spec *in,
		       const struct job_outcome *o)
{
	struct result *res = run->result;
	int r = capture_text(&o->out, &res->out);

	if (r >= 0)
		r = capture_text(&o->err, &res->err);
	if (r < 0)
		return r;
	if (o->started) {
		flow_isolation(run, &o->start);
		res->start_us = (o->start.at_ns - run->accepted_ns) / 1000;
	}
	if (o->error.code != ERROR_NONE)
		return 0;
	res->usage = o->done.usage;
	res->files_truncated = o->done.files_truncated;
	r = flow_take_changes(res, o);
	if (r >= 0)
		r = flow_take_network(run, o);
	if (r >= 0)
		r = flow_take_attempts(run);
	if (r >= 0)
		r = fill_stages(run, in, o);
	if (r >= 0 && res->verdict.status == STATUS_SUCCESS &&
	    o->done.commit.result == COMMIT_OVER_QUOTA)
		res->verdict.limit_hits |= UINT32_C(1) << CAUSE_DISK;
	if (r >= 0)
		flow_find_error(run, run->request->n_stages > 0
					     ? res->stages[res->n_stages - 1].name
					     : NULL);
	return r;
}

int flow_program(struct local_run *run, struct error *err)
{
	struct sandbox_spec in;
	struct job_outcome *o;
	struct job *job;
	_cleanup_(flow_eval_end) struct flow_eval eval = { 0 };
	int r = flow_build_stages(run, err);

	if (r <= 0)
		return r;
	/* A session has its channel already. */
	if (run->request->eval && run->channel_fd == 0)
		r = flow_eval_begin(&eval, run, err);
	if (r >= 0)
		r = flow_describe(run, &in, err);
	if (r >= 0)
		r = flow_execute(run, &in, &job, err);
	if (r < 0)
		return r;
	o = job_outcome(job);
	if (eval.run)
		evaluation_fill(&eval.answer, run->result);
	r = fill_result(run, &in, o);
	r = r < 0 ? error_oom(err) : flow_job_error(job, err);
	job_free(job);
	return r;
}

/* --- evaluated code --- */

/*
 * `eval`: the language's session runner is the program, and the caller's code is its only execution. The runner gets the code over a
 * channel, answers with value, outputs and error, and ends with the code's exit code when the channel is closed. So the end of the
 * process, its usage and its limits are those of every run.
 */

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

/* --- an invoked method --- */

/*
 * `invoke`: the language's runner is the program, and the caller's code is beside it as the tool. The answer
 * comes in a file, so that the tool's prints stay plain output. The program can write that file: it is parsed
 * as untrusted JSON and can only set the value or the error of its own run.
 */

#define PARAMS ".atoll-params.json"
#define RUNNER ".atoll-runner"

static int read_runner(struct local_run *run, struct span *ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	char relative[256];
	int r;

	buf_init(&text, DATA_FILE_MAX);
	if (snprintf(relative, sizeof(relative), "runners/%s", run->language->runner) >=
	    (int)sizeof(relative))
		return error_set(err, ERROR_INTERNAL, ENAMETOOLONG,
				 "the runner's name is too long");
	r = data_read(run->atoll->data_dir, relative, &text, err);
	if (r == -ENOENT)
		return error_set(err, ERROR_INTERNAL, ENOENT, "%.300s/%s is missing",
				 run->atoll->data_dir, relative);
	if (r < 0)
		return r;
	ret->data = arena_strndup(&run->memory, text.data, text.len);
	ret->len = text.len;
	return ret->data ? 0 : error_oom(err);
}

/* Adds the runner and the parameters to the list of files. */
static int add_invoke_files(struct local_run *run, const char *runner_path, struct sandbox_spec *in,
			    struct error *err)
{
	const json_t *params = run->request->invoke_params;
	_cleanup_free_ char *text = params ? json_dumps(params, JSON_COMPACT) : strdup("{}");
	struct build_file *files = arena_alloc(&run->memory, (in->n_files + 2) * sizeof(*files));
	struct span runner, kept = { 0 };
	int r = read_runner(run, &runner, err);

	if (r < 0)
		return r;
	if (text)
		kept = (struct span){ arena_strndup(&run->memory, text, strlen(text)),
				      strlen(text) };
	if (!files || !kept.data)
		return error_oom(err);
	memcpy(files, in->files, in->n_files * sizeof(*files));
	files[in->n_files] = (struct build_file){ SANDBOX_WORK, runner_path, runner, 0644 };
	files[in->n_files + 1] = (struct build_file){ SANDBOX_WORK, PARAMS, kept, 0644 };
	in->files = files;
	in->n_files += 2;
	return 0;
}

int flow_describe_invoke(struct local_run *run, struct sandbox_spec *ret, struct error *err)
{
	const struct request *req = run->request;
	const char *dot = strrchr(run->language->runner, '.');
	struct word_context c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	struct stage_spec *stage = arena_alloc(&run->memory, sizeof(*stage));
	char *runner = arena_alloc(&run->memory, PLAN_PATH_MAX);
	const char **argv, *tool;
	size_t n = 0;
	int r;

	if (run->decision.read_only)
		return error_field(err, "invoke",
				   "invoke needs a writable work directory; leave out read_only");
	if (!stage || !runner)
		return error_oom(err);
	(void)snprintf(runner, PLAN_PATH_MAX, SANDBOX_WORK "/" RUNNER "%.32s", dot ? dot : "");
	r = add_invoke_files(run, runner + sizeof(SANDBOX_WORK), ret, err);
	if (r < 0)
		return r;
	stage->name = "run";
	stage->limits = &run->decision.limits;
	stage->env = flow_env(run, NULL, &c);
	tool = c.source;
	c.source = runner;
	argv = flow_expand_all(run, (const char *const *)run->language->run_argv, &c, 3);
	if (!argv || !stage->env)
		return error_oom(err);
	while (argv[n])
		n++;
	argv[n] = tool;
	argv[n + 1] = req->invoke_class ? req->invoke_class : "";
	argv[n + 2] = req->invoke_method;
	stage->argv = argv;
	ret->stages = stage;
	ret->n_stages = 1;
	return 0;
}

static json_t *trace_error(const struct local_run *run, const char *trace)
{
	const struct error_input in = { .language = run->language->name,
					.words = trace,
					.words_len = strlen(trace) };

	return analysis_error(&in, NULL);
}

/* The tool's own exception, with the place in the caller's code if its traceback has one. */
static json_t *answer_error(const struct local_run *run, const json_t *answer)
{
	json_t *message = json_object_get(answer, "error");
	json_t *type = json_object_get(answer, "type");
	const char *trace = json_string_value(json_object_get(answer, "traceback"));
	json_t *error = trace ? trace_error(run, trace) : NULL;

	if (!error)
		error = json_pack("{s:n, s:n, s:n, s:n}", "type", "message", "file", "line");
	if (!error)
		return NULL;
	if (json_is_string(type))
		(void)json_object_set_new(error, "type", json_incref(type));
	(void)json_object_set_new(error, "message",
				  json_is_string(message) ? json_incref(message) : json_null());
	(void)json_object_set_new(error, "traceback", trace ? json_string(trace) : json_null());
	return error;
}

void flow_invoke_answer(struct local_run *run, const char *text, size_t len)
{
	const struct document doc = { "the answer of the invoked method", text, len };
	struct result *res = run->result;
	json_t *answer = NULL, *value;

	if (json_parse(&doc, &answer, NULL) < 0)
		return;
	value = json_object_get(answer, "result");
	if (json_is_object(answer) && !json_is_null(json_object_get(answer, "error")))
		res->error = answer_error(run, answer);
	if (value && !json_is_null(value))
		res->value = json_incref(value);
	json_decref(answer);
}

/* --- connections --- */

/*
 * What a run did on the network, from its relay's book (plan/relay-book.h) into the result: `network` lists connections,
 * `denials` what was refused and which request would permit it. A run without a network has no relay: what it tried is read from
 * its error messages, and the row says so.
 */

static void destination_text(const struct destination *destination, char *ret, size_t size)
{
	const bool six = strchr(destination->host, ':');

	if (destination->port)
		(void)snprintf(ret, size, "%s%s%s:%u", six ? "[" : "", destination->host,
			       six ? "]" : "", destination->port);
	else
		(void)snprintf(ret, size, "%s", destination->host);
}

static json_t *connection_json(const struct relay_row *row)
{
	static const char *const outcomes[_RELAY_OUTCOME_MAX] = {
		[RELAY_CONNECTED] = "connected",
		[RELAY_REFUSED] = "refused",
		[RELAY_UNREACHABLE] = "unreachable",
		[RELAY_TIMED_OUT] = "timed_out",
	};

	return json_pack("{s:s, s:i, s:s, s:I, s:I, s:I}", "host", row->destination.host, "port",
			 row->destination.port, "outcome", outcomes[row->outcome], "count",
			 (json_int_t)row->count, "sent", (json_int_t)row->sent, "received",
			 (json_int_t)row->received);
}

static json_t *denial_json(const struct local_run *run, const struct relay_refusal *refusal)
{
	static const struct {
		const char *rule, *hint; /* hint NULL: a request for this destination */
	} texts[_RELAY_DENIAL_MAX] = {
		[RELAY_NOT_LISTED] = { NULL, NULL },
		[RELAY_NOT_PUBLIC] = { "network: public addresses only",
				       "list the address itself in the policy's network.allow" },
		[RELAY_OVER_BYTES] = { "network.bytes of the policy",
				       "raise network.bytes in the policy" },
		[RELAY_TOO_MANY] = { "network: names of one run",
				     "look up fewer names in one run" },
	};
	char destination[HOST_NAME_MAX_BYTES + 16], what[sizeof(destination) + 16],
		hint[sizeof(destination) + 24];
	const char *asked = run->request->network_text;
	char rule[128];

	destination_text(&refusal->destination, destination, sizeof(destination));
	(void)snprintf(what, sizeof(what), "%s %s",
		       refusal->destination.port ? "connect" : "lookup", destination);
	(void)snprintf(hint, sizeof(hint), "--network allow:%s", destination);
	(void)snprintf(rule, sizeof(rule), "network: %.100s", asked ? asked : "");
	return json_pack("{s:s, s:s, s:I, s:s}", "what", what, "rule",
			 texts[refusal->reason].rule ? texts[refusal->reason].rule : rule, "count",
			 (json_int_t)refusal->count, "hint",
			 texts[refusal->reason].hint ? texts[refusal->reason].hint : hint);
}

static bool is_text(const struct destination *destination)
{
	const size_t n = strnlen(destination->host, sizeof(destination->host));

	return n < sizeof(destination->host) && utf8_is_valid(destination->host, n);
}

/* The relay spoke with hostile programs: nothing in its book is believed unchecked. */
static bool is_sound(const struct relay_book *book)
{
	if (book->n_rows > RELAY_ROWS_MAX || book->n_refusals > RELAY_DENIALS_MAX)
		return false;
	for (uint32_t i = 0; i < book->n_rows; i++)
		if (!is_text(&book->rows[i].destination) ||
		    book->rows[i].outcome >= _RELAY_OUTCOME_MAX)
			return false;
	for (uint32_t i = 0; i < book->n_refusals; i++)
		if (!is_text(&book->refusals[i].destination) ||
		    book->refusals[i].reason >= _RELAY_DENIAL_MAX)
			return false;
	return true;
}

static int append_book(const struct local_run *run, const struct relay_book *book)
{
	struct result *res = run->result;
	int r = 0;

	res->network_omitted += book->rows_lost;
	res->denials_omitted += book->refusals_lost;
	for (uint32_t i = 0; r == 0 && i < book->n_rows; i++)
		r = json_array_append_new(res->network, connection_json(&book->rows[i]));
	for (uint32_t i = 0; r == 0 && i < book->n_refusals; i++)
		r = json_array_append_new(res->denials, denial_json(run, &book->refusals[i]));
	return r;
}

static void unmap_book(const struct relay_book *book)
{
	if (book != MAP_FAILED)
		(void)munmap((void *)(uintptr_t)book, sizeof(*book));
}

/* NULL: it is not there, or not sound. */
static const struct relay_book *map_book(int fd)
{
	const struct relay_book *book;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(*book))
		return NULL;
	book = mmap(NULL, sizeof(*book), PROT_READ, MAP_PRIVATE, fd, 0);
	if (book != MAP_FAILED && is_sound(book))
		return book;
	unmap_book(book);
	return NULL;
}

static json_t *attempt_json(const struct network_attempt *attempt, const char *mode)
{
	char destination[HOST_NAME_MAX_BYTES + 16], what[sizeof(destination) + 16],
		hint[sizeof(destination) + 24], rule[32];
	struct destination named = attempt->destination;

	destination_text(&named, destination, sizeof(destination));
	(void)snprintf(hint, sizeof(hint), "--network allow:%s",
		       *named.host ? destination : "HOST:PORT");
	if (attempt->lookup)
		named.port = 0;
	destination_text(&named, destination, sizeof(destination));
	(void)snprintf(what, sizeof(what), "%s%s%s", attempt->lookup ? "lookup" : "connect",
		       *named.host ? " " : "", destination);
	(void)snprintf(rule, sizeof(rule), "network: %s", mode);
	return json_pack("{s:s, s:s, s:I, s:s, s:s}", "what", what, "rule", rule, "count",
			 (json_int_t)attempt->count, "hint", hint, "source", "program");
}

int flow_take_attempts(struct local_run *run)
{
	const char *const mode = run->decision.network == NETWORK_NONE	? "none"
				 : run->decision.network == NETWORK_OFF ? "off"
									: NULL;
	const struct result_stream *s = run->request->merge_stderr ? &run->result->out
								   : &run->result->err;
	struct network_attempt attempts[NETWORK_ATTEMPTS_MAX];
	size_t n = mode && s->len > 0 ? network_attempts((struct span){ s->text, s->len }, attempts)
				      : 0;
	int r = 0;

	if (n > 0 && !run->result->denials)
		run->result->denials = json_array();
	for (size_t i = 0; i < n && r == 0; i++)
		r = json_array_append_new(run->result->denials, attempt_json(&attempts[i], mode));
	return r < 0 ? -ENOMEM : 0;
}

int flow_take_network(struct local_run *run, const struct job_outcome *o)
{
	struct result *res = run->result;
	const struct relay_book *book;
	int r;

	if (run->decision.network != NETWORK_ALLOW)
		return 0;
	res->network = res->network ? res->network : json_array();
	res->denials = res->denials ? res->denials : json_array();
	if (!res->network || !res->denials)
		return -ENOMEM;
	book = map_book(o->book_fd);
	if (!book) {
		res->network_omitted++;
		return 0;
	}
	r = append_book(run, book);
	unmap_book(book);
	return r < 0 ? -ENOMEM : 0;
}

/* --- changes of a workspace --- */

/*
 * A program's changes to its workspace, from the broker's last record into the result. If one request runs
 * several programs (tests), each has its own transaction: their lists are joined, and `applied` is true if all
 * of them were applied.
 */

enum { CHANGES_BYTES_MAX = 4 << 20 };

static int append_list(struct result_commit *c, int fd, uint32_t *omitted)
{
	struct stat st;
	size_t size;
	char *list;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return 0;
	size = (size_t)st.st_size;
	if (size > CHANGES_BYTES_MAX - c->changes_len) {
		(*omitted)++;
		return 0;
	}
	list = realloc(c->changes, c->changes_len + size);
	if (!list)
		return -ENOMEM;
	c->changes = list;
	n = pread(fd, list + c->changes_len, size, 0);
	if (n > 0)
		c->changes_len += (size_t)n;
	return n < 0 ? -errno : 0;
}

static void explain_commit(const struct record_commit *r, char *ret, size_t size)
{
	switch (r->result) {
	case COMMIT_OVER_QUOTA:
		(void)snprintf(
			ret, size,
			"the workspace would hold %lld bytes in %lld files, and may hold %lld in "
			"%lld: remove some, or raise workspaces.bytes or workspaces.files",
			(long long)r->bytes, (long long)r->inodes, (long long)r->quota_bytes,
			(long long)r->quota_inodes);
		break;
	case COMMIT_NO_ROOM:
		(void)snprintf(ret, size, "the disk that the workspace lies on is full: make room");
		break;
	case COMMIT_BROKEN:
		(void)snprintf(ret, size, "the workspace cannot be written to: %s",
			       strerror(r->errnum));
		break;
	default:
		ret[0] = '\0';
	}
}

int flow_take_changes(struct result *res, const struct job_outcome *o)
{
	const struct record_commit *r = &o->done.commit;
	struct result_commit *c = &res->commit;
	uint32_t omitted = r->omitted;
	int e;

	if (r->result == COMMIT_NONE || r->result >= _COMMIT_RESULT_MAX)
		return 0;
	e = append_list(c, o->changes_fd, &omitted);
	if (e < 0)
		return e;
	c->applied = r->result == COMMIT_APPLIED && (!c->present || c->applied);
	c->present = true;
	c->omitted += omitted;
	if (!c->error[0])
		explain_commit(r, c->error, sizeof(c->error));
	return 0;
}
