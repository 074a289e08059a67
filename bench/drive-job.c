/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one job once and checks what came out. Commands are started with posix_spawn (vfork inside), their output
 * is read through a pipe until its end, then they are reaped; library calls go through one handle a lane. The clock
 * stops before anything is checked.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "drive.h"

enum { OUTPUT_MAX = 1 << 20 };

extern char **environ;

/* A list of strings as the NULL-terminated array that posix_spawn wants; they stay the list's. */
static char **job_words(json_t *list)
{
	size_t n = json_array_size(list);
	char **words = calloc(n + 1, sizeof(*words));

	for (size_t i = 0; words && i < n; i++) {
		words[i] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
		if (!words[i]) {
			free(words);
			return NULL;
		}
	}
	return words;
}

int job_define(json_t *definition, struct job *ret, struct error *err)
{
	json_t *argv = json_object_get(definition, "argv"),
	       *env = json_object_get(definition, "env");
	struct job job = {
		.request = json_string_value(json_object_get(definition, "request")),
		.http = json_string_value(json_object_get(definition, "http")),
		.port = (int)json_integer_value(json_object_get(definition, "port")),
		.fresh = json_is_true(json_object_get(definition, "fresh")),
		.any_body = json_is_true(json_object_get(definition, "any_body")),
		.expected = json_string_value(json_object_get(definition, "expected")),
		.prints_result = json_is_true(json_object_get(definition, "prints_result")),
		.memory_min = json_integer_value(json_object_get(definition, "memory_min")),
		.memory_max = json_integer_value(json_object_get(definition, "memory_max")),
		.definition = json_incref(definition),
	};
	int r = 0;

	if (argv)
		job.argv = job_words(argv);
	if (env)
		job.env = job_words(env);
	if (!job.expected || (env && !job.env) ||
	    (job.argv && job.argv[0]) + (job.request != NULL) + (job.http != NULL) != 1)
		r = error_set(
			err, ERROR_INPUT, EINVAL,
			"a job needs \"expected\" and one of \"argv\", \"request\", \"http\"");
	if (r < 0) {
		job_done(&job);
		return r;
	}
	*ret = job;
	return 0;
}

void job_done(struct job *job)
{
	free(job->argv);
	free(job->env);
	json_decref(job->definition);
	*job = (struct job){ 0 };
}

int lane_open(struct lane *lane, const struct place *place, struct error *err)
{
	_cleanup_free_ char *problem = NULL;
	const struct atoll_options options = {
		.size = sizeof(options),
		.data_dir = place->data_dir,
		.pool = place->pool,
	};
	int r;

	*lane = (struct lane){ .stderr_fd = memfd_create("stderr", MFD_CLOEXEC),
			       .http_fd = -EBADF };
	if (lane->stderr_fd < 0)
		return error_set(err, ERROR_INTERNAL, errno, "memfd: %s", strerror(errno));
	r = atoll_new(&options, &lane->handle, &problem);
	if (r < 0) {
		lane_close(lane);
		return error_set(err, ERROR_INTERNAL, -r, "%s", problem);
	}
	return 0;
}

void lane_close(struct lane *lane)
{
	lane->handle = atoll_free(lane->handle);
	lane->stderr_fd = fd_close(lane->stderr_fd);
	lane->http_fd = fd_close(lane->http_fd);
}

static int wrong(struct error *err, const char *what, const struct buf *output, int stderr_fd)
{
	char said[240] = "";

	if (stderr_fd >= 0 && pread(stderr_fd, said, sizeof(said) - 1, 0) < 0)
		said[0] = '\0';
	return error_set(err, ERROR_INTERNAL, EPROTO, "%s; output: %.150s%s%s", what,
			 output->data ? output->data : "", said[0] ? "; stderr: " : "", said);
}

static int check_output(const struct job *job, const char *text, struct error *err)
{
	if (text && strcmp(text, job->expected) == 0)
		return 0;
	return error_set(err, ERROR_INTERNAL, EPROTO, "it wrote \"%.200s\", not \"%.200s\"",
			 text ? text : "(nothing)", job->expected);
}

int job_check_result(const struct job *job, const char *text, struct sample *sample,
		     struct error *err)
{
	json_t *result = json_loads(text, 0, NULL);
	const char *status = json_string_value(json_object_get(result, "status"));
	const char *said = json_string_value(json_object_get(result, "stderr"));
	json_t *code = json_object_get(result, "exit_code");
	int64_t peak = json_integer_value(json_object_get(result, "memory_peak"));
	int r;

	if (!status || strcmp(status, "success") != 0 || !json_is_integer(code) ||
	    json_integer_value(code) != 0)
		r = error_set(err, ERROR_INTERNAL, EPROTO, "no success: %.300s", text);
	else if (!said || said[0])
		r = error_set(err, ERROR_INTERNAL, EPROTO, "it wrote to stderr: %.300s", said);
	else if (peak < MAX(job->memory_min, 1) || peak > job->memory_max)
		r = error_set(err, ERROR_INTERNAL, EPROTO,
			      "a peak of %lld bytes of memory cannot be right", (long long)peak);
	else
		r = check_output(job, json_string_value(json_object_get(result, "stdout")), err);
	json_decref(result);
	if (r < 0)
		return r;
	sample->memory_bytes = peak;
	return 0;
}

static int spawn(const struct job *job, const int out[2], int stderr_fd, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, stderr_fd, 2);
	if (r == 0)
		r = posix_spawn(ret, job->argv[0], &actions, NULL, job->argv,
				job->env ? job->env : environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int sample_command(struct lane *lane, const struct job *job, struct sample *sample,
			  struct error *err)
{
	_cleanup_close_ int reader = -EBADF, writer = -EBADF;
	_cleanup_buf_ struct buf output = { .max = OUTPUT_MAX };
	int out[2], status = 0, r;
	int64_t begin;
	pid_t pid;

	if (ftruncate(lane->stderr_fd, 0) < 0 || lseek(lane->stderr_fd, 0, SEEK_SET) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "stderr: %s", strerror(errno));
	begin = clock_now_ns();
	if (pipe2(out, O_CLOEXEC) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "pipe: %s", strerror(errno));
	reader = out[0];
	writer = out[1];
	r = spawn(job, out, lane->stderr_fd, &pid);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "%s: %s", job->argv[0], strerror(-r));
	writer = fd_close(writer);
	r = buf_read_fd(&output, reader);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(err, ERROR_INTERNAL, errno, "wait: %s", strerror(errno));
	sample->ns = clock_now_ns() - begin;
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "reading output: %s", strerror(-r));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		char what[64];

		(void)snprintf(what, sizeof(what), "it ended with wait status %#x",
			       (unsigned)status);
		return wrong(err, what, &output, lane->stderr_fd);
	}
	if (job->prints_result)
		return job_check_result(job, output.data ? output.data : "", sample, err);
	if (check_output(job, output.data ? output.data : "", NULL) < 0)
		return wrong(err, "wrong output", &output, lane->stderr_fd);
	return 0;
}

static int sample_call(struct lane *lane, const struct job *job, struct sample *sample,
		       struct error *err)
{
	_cleanup_free_ char *result = NULL, *problem = NULL;
	int64_t begin = clock_now_ns();
	int r = atoll_run(lane->handle, job->request, NULL, &result, &problem);

	sample->ns = clock_now_ns() - begin;
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "%s", problem);
	return job_check_result(job, result, sample, err);
}

int lane_sample(struct lane *lane, const struct job *job, struct sample *ret, struct error *err)
{
	struct sample sample = { 0 };
	int r = job->argv   ? sample_command(lane, job, &sample, err)
		: job->http ? http_sample(lane, job, &sample, err)
			    : sample_call(lane, job, &sample, err);

	if (r < 0)
		return r;
	*ret = sample;
	return 0;
}
