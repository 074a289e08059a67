/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. */
#include "atoll/daemon/process.h"

#include "atoll/daemon/control.h"
#include "atoll/daemon/view.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "run/broker-choice.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SETUP = 125, ENV_MAX = 64, PLACES_MAX = CONFIG_WORDS_MAX + 4 };

int process_find_front(struct error *err)
{
	static const char *const places[] = { "/atolld", "/../libexec/atoll/atolld",
					      "/../lib/atoll/atolld" };
	char exe[PATH_MAX], path[PATH_MAX + 32], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[MAX(n, 0)] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s%s", exe, places[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return error_set(err, ERROR_INTERNAL, ENOENT,
			 "cannot find the program atolld beside '%.200s/atoll'; install it there",
			 exe);
}

/* For both children. Between fork and exec: system calls only. */
static int process_detach(const int *keep, size_t n_keep)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		return -errno;
	if (chdir("/") < 0)
		return -errno;
	(void)setsid();
	sys_default_signals();
	return sys_close_others(keep, n_keep);
}

/* The monitor may have ended before prctl(); then no death signal would come. */
static int follow_parent(pid_t parent, int signo)
{
	int r = sys_prctl(PR_SET_PDEATHSIG, (unsigned long)signo, 0);

	return r == 0 && getppid() != parent ? -ESRCH : r;
}

/* A word of the setting `mounts` without its ":rw"; NULL: it has none, and was wanted. */
static const char *mount_path(const char *word, bool wants_writable)
{
	const size_t n = strlen(word);
	const bool writable = n > 3 && strcmp(word + n - 3, ":rw") == 0;

	/* Kept as long as the broker lives. */
	return wants_writable && !writable ? NULL : strndup(word, writable ? n - 3 : n);
}

/* Host paths that a front under an attacker's control may have shown in a sandbox: those that requests need. */
static const char *const *list_sources(const struct config *c, const char **ret, size_t max)
{
	static const char *const host[] = { "/usr",   "/bin",	 "/sbin", "/lib", "/lib32",
					    "/lib64", "/libx32", "/opt",  "/etc" };
	const char *kits = getenv("ATOLL_KIT_DIR");
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(host); i++)
		ret[n++] = host[i];
	ret[n++] = c->places.data_dir;
	if (kits && *kits == '/')
		ret[n++] = kits;
	for (size_t i = 0; c->places.images[i] && n + 1 < max; i++)
		ret[n++] = c->places.images[i];
	for (size_t i = 0; c->places.mounts[i] && n + 1 < max; i++) {
		const char *path = mount_path(c->places.mounts[i], false);

		if (path)
			ret[n++] = path;
	}
	ret[n] = NULL;
	return ret;
}

/*
 * All workspaces below the state directory, except that of POST /execute if output_data_path moves it. And the directories that programs
 * may change as writable mounts: a front with the monitor's own uid could write anywhere itself.
 */
static void list_workspaces(const struct config *c, const char *all, bool stranger,
			    struct workspace_place ret[PLACES_MAX])
{
	size_t n = 0;

	if (!stranger)
		ret[n++] = (struct workspace_place){ WORKSPACE_TREE, "/", 0, 0 };
	for (size_t i = 0; stranger && c->places.mounts[i] && n + 3 < PLACES_MAX; i++) {
		const char *path = mount_path(c->places.mounts[i], true);

		if (path)
			ret[n++] = (struct workspace_place){ WORKSPACE_TREE, path, 0, 0 };
	}
	if (*c->places.output_data_path)
		ret[n++] = (struct workspace_place){ CONFIG_EXECUTE_WORKSPACE,
						     c->places.output_data_path,
						     c->workspaces.bytes, c->workspaces.files };
	ret[n++] = (struct workspace_place){ NULL, all, c->workspaces.bytes, c->workspaces.files };
	ret[n] = (struct workspace_place){ 0 };
}

/* Reports why the child could not start, and ends it. */
static _noreturn_ void fail_process(const struct process_setup *s, const char *what, int r)
{
	log_say(s->log, LOG_ERROR, what, LOG_TEXT("why", strerror(-r)));
	_exit(EXIT_SETUP);
}

static _noreturn_ void broker_main(const struct process_setup *s, pid_t parent, int lifeline_fd)
{
	const int keep[] = { s->broker_fd, lifeline_fd, s->log->fd };
	const char *sources[2 * CONFIG_WORDS_MAX + 16];
	char workspaces[PATH_MAX];
	struct workspace_place places[PLACES_MAX];
	const bool stranger = s->identity.uid != geteuid();
	const struct pool_settings settings = {
		.data_dir = s->config->places.data_dir,
		.listen_fd = s->broker_fd,
		.lifeline_fd = lifeline_fd,
		.front_uid = s->identity.uid,
		.spares = (uint32_t)s->config->pool.spares,
		.memory_bytes = s->config->pool.memory_bytes,
		/* A front with the monitor's own uid could read the files anyway. */
		.sources = stranger ? list_sources(s->config, sources, ARRAY_SIZE(sources)) : NULL,
		.workspaces = places,
	};
	struct error err = { 0 };
	int r = process_detach(keep, ARRAY_SIZE(keep));

	s->log->who = "broker";
	(void)snprintf(workspaces, sizeof(workspaces), "%s/workspaces",
		       s->config->places.state_dir);
	list_workspaces(s->config, workspaces, stranger, places);
	if (r == 0)
		r = follow_parent(parent, SIGTERM);
	if (r < 0)
		fail_process(s, "the broker's process cannot be set up", r);
	r = pool_serve_at(&settings, &err);
	if (r < 0)
		log_say(s->log, LOG_ERROR, err.text);
	_exit(r < 0 ? 1 : 0);
}

pid_t process_start_broker(const struct process_setup *s, int lifeline_fd)
{
	sigset_t ends, before;
	pid_t parent = getpid(), pid;

	/* The children handle these signals from the start: a broker that gets SIGTERM cleans up. */
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGHUP);
	(void)sigprocmask(SIG_SETMASK, &ends, &before);
	pid = fork();
	if (pid == 0)
		broker_main(s, parent, lifeline_fd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? -errno : pid;
}

/* Enough for connections, files of outputs and a few for each run. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	limit = (struct rlimit){ 0 };
	(void)setrlimit(RLIMIT_CORE, &limit);
}

/* A home of its own, Atoll's variables, and those that configure libraries. */
static char **front_env(const struct config *c, char **ret)
{
	static const char *const kept[] = {
		"ATOLL_",	 "TZ=",		  "LANG=",	    "LC_",
		"ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "SSL_CERT_"
	};
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	static char home[PATH_MAX + 8];
	size_t n = 0;

	(void)snprintf(home, sizeof(home), "HOME=%s", c->places.state_dir);
	ret[n++] = path;
	ret[n++] = home;
	for (char **v = environ; *v && n + 1 < ENV_MAX; v++)
		for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
			if (strncmp(*v, kept[i], strlen(kept[i])) == 0) {
				ret[n++] = *v;
				break;
			}
	ret[n] = NULL;
	return ret;
}

/* If no root can be made, the front serves without one, and results say so. */
static int make_root(const struct process_setup *s)
{
	struct confine_path paths[CONFINE_PATHS_MAX];
	int r;

	(void)umask(022);
	view_list(s->config, paths);
	r = confine_root(paths);
	if (r < 0)
		log_say(s->log, LOG_WARNING, "the front gets no root of its own",
			LOG_TEXT("why", strerror(-r)));
	return r;
}

static _noreturn_ void front_main(const struct process_setup *s, pid_t parent, int control_fd)
{
	static char name[] = "atolld";
	static char rooted[] = PROCESS_OWN_ROOT;
	char *argv[] = { name, NULL, NULL }, *env[ENV_MAX];
	/* Above the number that the socket moves to. */
	int program_fd = sys_dup_above(s->program_fd, CONTROL_FD + 1);
	int log_fd = sys_dup_above(s->log->fd, CONTROL_FD + 1);
	const int keep[] = { CONTROL_FD, program_fd, log_fd };
	sigset_t none;
	int r = MIN(program_fd, log_fd);

	s->log->who = "front";
	s->log->fd = log_fd;
	/* The socket moves to the number that the front expects; dup2 onto itself would keep close-on-exec. */
	if (r >= 0 && (control_fd == CONTROL_FD ? fcntl(control_fd, F_SETFD, 0)
						: dup2(control_fd, CONTROL_FD)) < 0)
		r = -errno;
	if (r >= 0)
		r = process_detach(keep, ARRAY_SIZE(keep));
	if (r < 0)
		fail_process(s, "the front's process cannot be set up", r);
	raise_files();
	if (geteuid() == 0 && make_root(s) == 0)
		argv[1] = rooted;
	(void)umask(077);
	r = identity_become(&s->identity);
	if (r == 0)
		r = follow_parent(parent, SIGKILL);
	if (r < 0)
		fail_process(s, "the front cannot give up its privileges", r);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	r = sys_execveat(program_fd, argv, front_env(s->config, env));
	fail_process(s, "the program atolld cannot be executed", r);
}

pid_t process_start_front(const struct process_setup *s, int control_fd)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		front_main(s, parent, control_fd);
	return pid < 0 ? -errno : pid;
}

int process_signal(const struct process_setup *s, int pidfd, int signo)
{
	int r = sys_pidfd_send_signal(pidfd, signo), status = 1;
	pid_t pid;

	if (r != -EPERM)
		return r;
	/* The front's user may, and this process could become that user when it started the front. */
	pid = fork();
	if (pid == 0)
		_exit(identity_become(&s->identity) < 0 || sys_pidfd_send_signal(pidfd, signo) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : r;
}

void process_describe_end(int wait_status, char *ret, size_t size)
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(ret, size, "signal %d (%s)", WTERMSIG(wait_status),
			       strsignal(WTERMSIG(wait_status)));
	else if (WEXITSTATUS(wait_status) == EXIT_SETUP)
		(void)snprintf(ret, size, "it could not be set up (exit code %d)", EXIT_SETUP);
	else
		(void)snprintf(ret, size, "exit code %d", WEXITSTATUS(wait_status));
}
