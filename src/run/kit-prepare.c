/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes kits. Each comes from an ordinary run of its language's recipe: a sandbox that sees what every sandbox
 * sees and nothing of any caller. The files of that run are the kit.
 */
#include "run/kit-prepare.h"

#include "base/clock.h"
#include "base/fd.h"
#include "run/run.h"
#include "run/toolchain/kit.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A process of the least priority, 19, gets so little of a busy host that it needs seconds to die after SIGKILL: for its
 * end, too, it needs a processor. At 10 it gets seven times as much, a tenth of what other processes get.
 */
enum { NICE_BEHIND = 10, SHARES_USUAL = 1024, SHARES_BEHIND = 128 };

/* The recipe as a request. shares: CPU shares; other sandboxes have 1024. */
static json_t *make_request(const struct language *lang, int shares)
{
	json_t *argv = json_array();

	for (const char **word = lang->kit.make; *word; word++)
		(void)json_array_append_new(argv, json_string(*word));
	return json_pack("{s:s, s:[{s:s, s:o}], s:{s:i, s:s, s:s, s:s, s:i, s:i}}", "language",
			 lang->id, "stages", "name", "kit", "argv", argv, "limits", "timeout", 300,
			 "memory", "2g", "disk", "1g", "file_size", "512m", "pids", 256,
			 "cpu_shares", shares);
}

/* The policy of such a run says which part of the host it sees, so it is part of the key. */
static int find_key(struct atoll *a, const struct language *lang, char ret[SHA256_HEX],
		    struct error *err)
{
	struct local_run run = { .atoll = a, .output_fd = -EBADF };
	json_t *root = make_request(lang, SHARES_USUAL);
	int r = root ? flow_open(&run, root, err) : error_oom(err);

	if (r >= 0) {
		r = kit_key(lang, run.policy, ret);
		if (r < 0)
			(void)error_set(err, ERROR_RUNTIME, -r, "its toolchain is not whole: %s",
					strerror(-r));
	}
	flow_close(&run);
	json_decref(root);
	return r;
}

static int publish(struct kit_draft *draft, const char *key, const struct result *res,
		   struct error *err)
{
	_cleanup_free_ struct kit_file *files = calloc(res->n_files + 1, sizeof(*files));
	int r;

	if (!files)
		return error_oom(err);
	if (res->verdict.status != STATUS_SUCCESS)
		return error_set(err, ERROR_RUNTIME, ENOEXEC,
				 "its recipe ended with status '%s', exit code %d: %.200s",
				 status_name(res->verdict.status), res->verdict.exit_code,
				 res->err.text ? res->err.text : "");
	if (res->files_truncated)
		return error_set(err, ERROR_STORAGE, EFBIG, "its recipe left too many files");
	for (size_t i = 0; i < res->n_files; i++)
		files[i] = (struct kit_file){ res->files[i].path, res->files[i].sha256 };
	r = kit_draft_publish(draft, key, files, res->n_files);
	return r < 0 ? error_set(err, ERROR_STORAGE, -r, "it cannot be kept: %s", strerror(-r)) : 0;
}

struct kit_making {
	struct atoll *atoll;
	const struct kit_watch *watch;
	int place_fd;
};

static int make_kit(const struct kit_making *m, const struct language *lang, const char *key,
		    struct error *err)
{
	_cleanup_(kit_draft_end) struct kit_draft draft = { 0 };
	_cleanup_(result_cleanup) struct result *res = NULL;
	struct local_run run = {
		.atoll = m->atoll, .output_fd = -EBADF, .full = true, .accepted_ns = clock_now_ns()
	};
	char path[PLAN_PATH_MAX];
	json_t *root;
	int r = kit_draft_begin(m->place_fd, &draft);

	if (r >= 0)
		r = kit_draft_path(&draft, path, sizeof(path));
	if (r < 0)
		return error_set(err, ERROR_STORAGE, -r, "there is no place for it: %s",
				 strerror(-r));
	run.options = (struct atoll_run_options){
		.size = sizeof(run.options),
		.output_dir = path,
		.use_cancel_fd = m->watch->cancel_fd >= 0,
		.cancel_fd = m->watch->cancel_fd,
	};
	root = make_request(lang, m->watch->behind ? SHARES_BEHIND : SHARES_USUAL);
	r = root ? flow_run(&run, root, &res, err) : error_oom(err);
	if (r >= 0)
		r = publish(&draft, key, res, err);
	flow_close(&run);
	json_decref(root);
	return r;
}

static void report_kit(const struct kit_watch *w, const struct language *lang, const char *text)
{
	if (w->say)
		w->say(w->data, lang->title, text);
}

static int prepare_language(const struct kit_making *m, const struct language *lang,
			    struct error *err)
{
	int64_t begin_ns = clock_now_ns();
	char key[SHA256_HEX], text[64];
	int r = language_available(lang, NULL, err);

	if (r >= 0)
		r = find_key(m->atoll, lang, key, err);
	if (r >= 0 && kit_verify(m->place_fd, key) == 0) {
		report_kit(m->watch, lang, "was there");
		return 0;
	}
	if (r >= 0) {
		report_kit(m->watch, lang, NULL);
		r = make_kit(m, lang, key, err);
	}
	if (r < 0)
		return error_wrap(err, r, "kit of %s", lang->title);
	(void)snprintf(text, sizeof(text), "made in %.1f s",
		       (double)(clock_now_ns() - begin_ns) / (double)NS_PER_SEC);
	report_kit(m->watch, lang, text);
	return 0;
}

static bool is_cancelled(const struct kit_watch *w)
{
	struct pollfd p = { .fd = w->cancel_fd, .events = POLLIN };

	return w->cancel_fd >= 0 && poll(&p, 1, 0) > 0;
}

/* If a language was named, a failure is reported. */
static int prepare_named(const struct kit_making *m, struct error *err)
{
	int r = 0;

	for (const char *const *name = m->watch->only; r >= 0 && *name; name++) {
		const struct language *lang;

		r = registry_find(m->atoll->registry, *name, &lang, err);
		if (r >= 0)
			r = atoll_resolve_version(m->atoll, *name, NULL, &lang, err);
		if (r >= 0 && !language_has_kit(lang))
			report_kit(m->watch, lang, "has no kit");
		else if (r >= 0)
			r = prepare_language(m, lang, err);
	}
	return r;
}

/*
 * NULL: no file of an installed language with a kit. A broken file is reported when its language is asked for.
 */
static const struct language *language_of_file(const struct kit_making *m, const char *file)
{
	size_t n = strcspn(file, ".");
	const struct language *lang;
	struct error err = { 0 };
	char name[64];

	if (n == 0 || n >= sizeof(name) || strcmp(file + n, ".yaml") != 0)
		return NULL;
	memcpy(name, file, n);
	name[n] = '\0';
	if (registry_find(m->atoll->registry, name, &lang, &err) < 0 || !language_has_kit(lang) ||
	    language_available(lang, NULL, &err) < 0)
		return NULL;
	return lang;
}

/* A failure does not stop the others; the last failure is returned. */
static int prepare_all(const struct kit_making *m, struct error *err)
{
	char path[PATH_MAX];
	int all = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/languages", m->atoll->data_dir);
	dir = opendir(path);
	for (struct dirent *d; dir && !is_cancelled(m->watch) && (d = readdir(dir));) {
		const struct language *lang = language_of_file(m, d->d_name);
		int r = lang ? prepare_language(m, lang, err) : 0;

		all = r < 0 ? r : all;
	}
	if (dir)
		(void)closedir(dir);
	return all;
}

int kit_prepare(struct atoll *a, const struct kit_watch *watch, struct error *err)
{
	struct kit_making m = { a, watch, kit_place_open(atoll_cache(a)) };
	bool named = watch->only && watch->only[0];
	mode_t mask;
	int r;

	if (m.place_fd < 0)
		return error_set(err, ERROR_STORAGE, -m.place_fd, "there is no place for kits: %s",
				 strerror(-m.place_fd));
	/* One maker at a time: kits of another maker are found afterwards. */
	if (flock(m.place_fd, watch->behind ? LOCK_EX | LOCK_NB : LOCK_EX) < 0) {
		int errnum = errno;

		(void)fd_close(m.place_fd);
		return errnum == EWOULDBLOCK ? 0
					     : error_set(err, ERROR_STORAGE, errnum,
							 "the place for kits cannot be locked: %s",
							 strerror(errnum));
	}
	/* Sandboxes of root run as other users, who must be able to read the kit. */
	mask = umask(022);
	r = named ? prepare_named(&m, err) : prepare_all(&m, err);
	(void)umask(mask);
	kit_sweep(m.place_fd, KIT_BYTES_MAX, KITS_MAX);
	(void)fd_close(m.place_fd);
	return r;
}

/* In a process of its own, which ends with the process it serves. */
static void prepare_alone(const char *data_dir, int served_fd)
{
	const struct atoll_options options = { .size = sizeof(options),
					       .data_dir = data_dir,
					       .pool = "" };
	const struct kit_watch watch = { .behind = true, .cancel_fd = served_fd };
	struct error err = { 0 };
	struct atoll *a = NULL;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setpriority(PRIO_PROCESS, 0, NICE_BEHIND);
	if (atoll_new(&options, &a, NULL) == 0) {
		int r = kit_prepare(a, &watch, &err);

		(void)r; /* without a kit, compiles are slower */
		(void)atoll_free(a);
	}
}

void kit_prepare_behind(const char *data_dir)
{
	enum { SERVED_FD = 3 };
	pid_t served = getpid(), pid = fork();
	int fd;

	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	if (pid != 0)
		return;
	/* Forked twice, so that the serving process need not reap it. */
	if (fork() != 0)
		_exit(0);
	(void)syscall(SYS_close_range, 3U, ~0U, 0U);
	fd = (int)syscall(SYS_pidfd_open, served, 0);
	if (fd == SERVED_FD)
		prepare_alone(data_dir, fd);
	_exit(0);
}
