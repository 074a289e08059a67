/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public interface (atoll/atoll.h) over the flow of run.h. A handle keeps between runs: languages and
 * policies read so far, the host's facts, the loop, and a broker. If no pool listens, the broker is forked at
 * the very start of a run, while this process is small, and prepares itself while the request is parsed.
 */
#include "run/executor.h"
#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/probe.h"
#include "run/doctor.h"
#include "run/toolchain/data.h"
#include "spec/notice.h"

#include <string.h>

static int refuse_call(const struct error *err, int r, char **problem)
{
	if (problem)
		*problem = strdup(err->text);
	return r;
}

/* Waits for the broker's HELLO. */
static int greet(struct atoll *a)
{
	int r = link_hello(a->link, &a->facts);

	if (r == 0 && link_is_shared(a->link))
		a->warm = link_is_warm(a->link);
	return r;
}

const struct host_facts *atoll_facts(struct atoll *a)
{
	/* The broker's facts are preferred; without a broker this process probes the same. */
	if (!a->probed && (!a->link || greet(a) < 0))
		host_probe(&a->facts);
	a->facts.front = a->front;
	a->probed = true;
	return &a->facts;
}

int atoll_cache(struct atoll *a)
{
	if (a->cache_fd == -EBADF) {
		a->cache_fd = cache_open(a->cache_option);
		/* Tried once: -EBADF means not tried yet. */
		if (a->cache_fd == -EBADF)
			a->cache_fd = -ENOENT;
	}
	return a->cache_fd;
}

static int watch_broker(struct atoll *a, struct error *err)
{
	int r = link_watch(a->link, a->loop);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot watch the sandbox broker: %s",
				 strerror(-r));
	return 0;
}

/* Starts an own broker. A warm one must know its runtimes before it starts. */
static int start_broker(struct atoll *a, struct error *err)
{
	int r = 0;

	a->warm = a->broker.warm;
	if (a->warm && !a->broker.table.runtimes)
		r = broker_choice_warm(&a->broker, a->registry, a->data_dir, err);
	return r < 0 ? r : broker_start(&a->broker, &a->link, err);
}

int atoll_link(struct atoll *a, struct error *err)
{
	int r;

	/* A shared broker may have ended since the last run. */
	if (a->link && link_is_shared(a->link))
		(void)!link_dispatch(a->link);
	if (a->link && link_is_broken(a->link))
		a->link = link_close(a->link);
	if (!a->link) {
		a->link = broker_connect(&a->broker);
		r = a->link ? watch_broker(a, err) : 0;
		if (r < 0)
			return r;
	}
	/* A pool of another version, or without an answer, is not used. */
	if (a->link && link_is_shared(a->link) && greet(a) < 0)
		a->link = link_close(a->link);
	if (a->link)
		return 0;
	r = start_broker(a, err);
	return r < 0 ? r : watch_broker(a, err);
}

/* A version is asked for by an ordinary run; only its output is used. */
static int probe_run(void *data, const json_t *request, struct buf *out)
{
	struct local_run run = { .atoll = data,
				 .output_fd = -EBADF,
				 .accepted_ns = clock_now_ns() };
	json_t *root = json_deep_copy(request);
	struct result *res = NULL;
	struct error err = { 0 };
	int r;

	if (!root)
		return -ENOMEM;
	r = flow_run(&run, root, &res, &err);
	if (r >= 0 && res->verdict.status != STATUS_SUCCESS)
		r = -ENODATA;
	if (r >= 0)
		r = buf_append(out, res->out.text, res->out.len);
	if (r >= 0)
		r = buf_append(out, res->err.text, res->err.len);
	(void)result_free(res);
	flow_close(&run);
	json_decref(root);
	return r;
}

struct prober atoll_prober(struct atoll *a, const char *image)
{
	return (struct prober){
		.run = probe_run,
		.data = a,
		.image = image,
		.data_dir = a->data_dir,
		.cache_fd = atoll_cache(a),
	};
}

int atoll_open_data(struct atoll *a, const struct atoll_options *o, struct error *err)
{
	int r;

	if (o->cache_dir) {
		a->cache_option = strdup(o->cache_dir);
		if (!a->cache_option)
			return error_oom(err);
	}
	r = data_find(o->data_dir, &a->data_dir, err);
	return r < 0 ? r : registry_new(a->data_dir, &a->registry, err);
}

static int setup(struct atoll *a, const struct atoll_options *o, struct error *err)
{
	int r;

	a->cache_fd = -EBADF;
	r = broker_choice_init(&a->broker, o, err);
	if (r < 0)
		return r;
	a->link = broker_connect(&a->broker);
	if (!a->link && o->start_broker && !o->warm)
		r = start_broker(a, err);
	if (r >= 0)
		r = atoll_open_data(a, o, err);
	if (r < 0)
		return r;
	a->loop = loop_new();
	if (!a->loop)
		return error_set(err, ERROR_INTERNAL, errno ? errno : ENOMEM,
				 "cannot make an event loop: %s", strerror(errno));
	if (a->link)
		return watch_broker(a, err);
	return o->start_broker ? atoll_link(a, err) : 0;
}

int atoll_new(const struct atoll_options *options, struct atoll **ret, char **problem)
{
	struct atoll_options given = { .size = sizeof(given) };
	struct error err = { 0 };
	struct atoll *a = calloc(1, sizeof(*a));
	int r;

	if (!a) {
		(void)error_oom(&err);
		return refuse_call(&err, -ENOMEM, problem);
	}
	if (options)
		memcpy(&given, options, MIN(options->size, sizeof(given)));
	r = setup(a, &given, &err);
	if (r < 0) {
		(void)atoll_free(a);
		return refuse_call(&err, r, problem);
	}
	*ret = a;
	return 0;
}

struct atoll *atoll_free(struct atoll *a)
{
	if (!a)
		return NULL;
	a->link = link_close(a->link);
	a->loop = loop_free(a->loop);
	run_fds_done(&a->run_fds);
	broker_choice_done(&a->broker);
	memo_done(&a->memo);
	a->registry = registry_free(a->registry);
	a->cache_fd = fd_close(a->cache_fd);
	free(a->cache_option);
	free(a->rules.dir);
	free(a->rules.presets);
	free(a->data_dir);
	free(a);
	return NULL;
}

/* Gives the caller the results that it asked for. */
static int report_result(const struct local_run *run, const struct result *res, char **result_json,
			 json_t **result_tree, struct error *err)
{
	const struct atoll_run_options *o = &run->options;
	char notice[512];

	if (!res)
		return 0;
	if (o->exit_code)
		*o->exit_code = result_exit_code(res);
	if (o->notice && notice_text(res, notice, sizeof(notice)) > 0)
		*o->notice = strdup(notice);
	if (o->reduced && reduced_text(&res->isolation, notice, sizeof(notice)) > 0)
		*o->reduced = strdup(notice);
	if (result_tree) {
		*result_tree = result_to_json(res);
		return *result_tree ? 0 : error_oom(err);
	}
	if (!result_json)
		return 0;
	*result_json = result_to_text(res);
	return *result_json ? 0 : error_oom(err);
}

static int pass_output(void *data, const struct run_event *event)
{
	const struct atoll_run_options *o = data;

	return o->on_output(o->data,
			    event->output.stream == OUTPUT_STDOUT ? ATOLL_STDOUT : ATOLL_STDERR,
			    event->output.bytes.data, event->output.bytes.len);
}

/* Of text or root, one is NULL; so is one of result_json and result_tree, or both. */
static int run_any(struct atoll *a, const char *text, json_t *root,
		   const struct atoll_run_options *options, char **result_json,
		   json_t **result_tree, char **problem)
{
	const struct document doc = { "request", text, text ? strlen(text) : 0 };
	struct local_run run = { .atoll = a, .output_fd = -EBADF, .accepted_ns = clock_now_ns() };
	struct result *res = NULL;
	struct error err = { 0 };
	int r, reported;

	(void)json_incref(root);
	if (options)
		memcpy(&run.options, options, MIN(options->size, sizeof(run.options)));
	if (run.options.on_output)
		run.observer = (struct run_observer){ &run.options, run_event_bit(RUN_OUTPUT),
						      pass_output };
	run.full = result_json && !run.options.brief;
	if (run.options.exit_code)
		*run.options.exit_code = 125;
	/* A forked broker starts while this process parses. */
	r = atoll_link(a, &err);
	if (r >= 0 && !root)
		r = json_parse(&doc, &root, &err);
	if (r >= 0)
		r = flow_run(&run, root, &res, &err);
	else
		res = flow_refusal(&run, &err);
	reported = report_result(&run, res, result_json, result_tree, &err);
	if (r >= 0)
		r = reported;
	(void)result_free(res);
	flow_close(&run);
	json_decref(root);
	return r < 0 ? refuse_call(&err, r, problem) : 0;
}

int atoll_run(struct atoll *a, const char *request_json, const struct atoll_run_options *options,
	      char **result_json, char **problem)
{
	return run_any(a, request_json, NULL, options, result_json, NULL, problem);
}

int atoll_run_tree(struct atoll *a, json_t *request, const struct atoll_run_options *options,
		   struct atoll_run_result result, char **problem)
{
	return run_any(a, NULL, request, options, result.json, result.tree, problem);
}

static int hand_out(json_t *tree, char **json, char **problem)
{
	struct error err = { 0 };

	*json = tree ? json_dumps(tree, 0) : NULL;
	json_decref(tree);
	if (*json)
		return 0;
	(void)error_oom(&err);
	return refuse_call(&err, -ENOMEM, problem);
}

int atoll_detect(struct atoll *a, const struct atoll_sample *sample, char **language,
		 char **problem)
{
	const struct registry_sample given = { sample->path, sample->head, sample->n };
	const struct language *found;
	struct error err = { 0 };
	int r = registry_detect(a->registry, &given, &found, &err);

	if (r < 0)
		return refuse_call(&err, r, problem);
	*language = strdup(found->name);
	return *language ? 0 : -ENOMEM;
}

bool flow_language_is_compiled(struct atoll *a, const char *name)
{
	const struct language *found;
	struct error ignored = { 0 };

	return registry_find(a->registry, name, &found, &ignored) == 0 && found->compile.argv[0];
}

int atoll_languages(struct atoll *a, char **json, char **problem)
{
	struct prober prober = atoll_prober(a, NULL);
	struct error err = { 0 };
	json_t *tree = NULL;
	int r = registry_to_json(a->registry, &prober, &tree, &err);

	return r < 0 ? refuse_call(&err, r, problem) : hand_out(tree, json, problem);
}

int atoll_doctor(struct atoll *a, char **json, char **problem)
{
	struct prober prober = atoll_prober(a, NULL);
	struct error err = { 0 };
	json_t *tree = NULL;
	int r = doctor_examine(a->registry, &prober, NULL, &tree, &err);

	return r < 0 ? refuse_call(&err, r, problem) : hand_out(tree, json, problem);
}
