/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See broker-choice.h. A pool's socket is in a directory of its user and has mode 0600; both ends also check
 * the peer's uid. A lock file beside the socket shows whether the pool lives: if no process holds the lock, the
 * socket is stale and replaced.
 */
#include "run/broker-choice.h"

#include "base/fd.h"
#include "base/parse.h"
#include "broker/broker.h"
#include "run/pool-place.h"
#include "run/toolchain/data.h"
#include "run/warm-languages.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { POOL_SPARES = 128, POOL_BACKLOG = 4096, LOCK_TRIES = 16 };

/* The default for all spares together. */
static int64_t default_memory_bytes(void)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 ? MIN(pages / 16 * page_bytes, GiB) : 64 * MiB;
}

/* The existing part of a path, with links resolved; the missing part follows unchanged. */
static int resolve(const char *path, char **ret)
{
	for (size_t n = strlen(path);;) {
		_cleanup_free_ char *head = strndup(n ? path : "/", n ? n : 1);
		_cleanup_free_ char *there = head ? realpath(head, NULL) : NULL;

		if (there)
			return asprintf(ret, "%s%s", strcmp(there, "/") == 0 ? "" : there,
					path + n) < 0
				       ? -ENOMEM
				       : 0;
		if (!head || errno != ENOENT || n == 0)
			return head ? -errno : -ENOMEM;
		while (--n > 0 && path[n] != '/')
			;
	}
}

/* The default directory of this user's workspaces. *ret NULL: no known place. */
static int workspaces_path(char **ret)
{
	const char *state = getenv("ATOLL_STATE_DIR"), *home = getenv("HOME");
	_cleanup_free_ char *path = NULL;
	int r;

	*ret = NULL;
	if (state && state[0] == '/')
		r = asprintf(&path, "%s/workspaces", state);
	else if (geteuid() == 0)
		r = asprintf(&path, "/var/lib/atoll/workspaces");
	else if ((state = getenv("XDG_STATE_HOME")) && state[0] == '/')
		r = asprintf(&path, "%s/atoll/workspaces", state);
	else if (home && home[0] == '/')
		r = asprintf(&path, "%s/.local/state/atoll/workspaces", home);
	else
		return 0;
	if (r < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* A directory that cannot be read is reported when a run needs it. */
	r = resolve(path, ret);
	return r == -ENOMEM ? r : 0;
}

/* The bound in the variable if it is valid, otherwise preset; as the daemon's setting of the same name. */
static int64_t bound_of(const char *variable, int64_t preset)
{
	const char *text = getenv(variable);
	int64_t bound;

	if (text && strcmp(text, "none") == 0)
		return 0;
	return text && parse_size(text, &bound) == 0 && bound > 0 ? bound : preset;
}

/* For fronts with the broker's own user, who could write there anyway. */
static const struct workspace_place any_directory = { .name = WORKSPACE_TREE, .path = "/" };

static struct workspace_place workspaces_below(const char *path)
{
	return (struct workspace_place){
		.path = path,
		.quota_bytes = bound_of("ATOLL_WORKSPACES_BYTES", WORKSPACE_BYTES),
		.quota_inodes = bound_of("ATOLL_WORKSPACES_FILES", WORKSPACE_INODES),
	};
}

int broker_choice_init(struct broker_choice *c, const struct atoll_options *o, struct error *err)
{
	*c = (struct broker_choice){ .warm = o->warm != 0 };
	if (pool_place_find(o->pool, &c->path) < 0 || workspaces_path(&c->workspaces) < 0)
		return error_oom(err);
	return 0;
}

int broker_choice_warm(struct broker_choice *c, struct registry *reg, const char *data_dir,
		       struct error *err)
{
	c->bounds = (struct warm_bounds){ .memory_bytes = default_memory_bytes(),
					  .spares = POOL_SPARES };
	return registry_warm_table(reg, data_dir, &c->memory, &c->table, err);
}

void broker_choice_done(struct broker_choice *c)
{
	free(c->path);
	free(c->workspaces);
	c->path = c->workspaces = NULL;
	arena_done(&c->memory);
}

struct link *broker_connect(const struct broker_choice *c)
{
	struct link *link;

	return c->path && link_connect(c->path, &link) == 0 ? link : NULL;
}

/* Runs in the broker's process. */
static int serve_own_broker(void *data, int fd)
{
	const struct broker_choice *c = data;
	const struct workspace_place workspaces[] = { any_directory,
						      workspaces_below(c->workspaces),
						      { 0 } };
	const struct broker_options options = {
		.front_fd = fd,
		.listen_fd = -EBADF,
		.warm = c->warm ? &c->table : NULL,
		.bounds = c->bounds,
		.workspaces = workspaces,
	};

	return broker_serve(&options);
}

int broker_start(struct broker_choice *c, struct link **ret, struct error *err)
{
	return link_spawn((struct link_server){ serve_own_broker, c }, ret, err);
}

/* The listening side: a pool's files. */
struct pool_place {
	char *path, *lock_path;
	int lock_fd, listen_fd;
	char *dir;
	bool made_dir;
};

static int make_directory(struct pool_place *p, struct error *err)
{
	const char *slash = strrchr(p->path, '/');

	if (!slash || slash == p->path)
		return 0;
	p->dir = strndup(p->path, (size_t)(slash - p->path));
	if (!p->dir)
		return error_oom(err);
	p->made_dir = mkdir(p->dir, 0700) == 0;
	if (!p->made_dir && errno != EEXIST)
		return error_set(err, ERROR_STORAGE, errno,
				 "cannot make '%.200s' for the pool's socket: %s", p->dir,
				 strerror(errno));
	return 0;
}

/* 1: locked; 0: the previous holder removed the file meanwhile, try again. */
static int try_lock(struct pool_place *p)
{
	_cleanup_close_ int fd = open(p->lock_path,
				      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	struct stat held, named;

	if (fd < 0)
		return -errno;
	/* A byte in the lock file: the holder of the lock, whichever process it is, removes the directory. */
	if (p->made_dir && write(fd, "d", 1) < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &held) < 0)
		return -errno;
	if (stat(p->lock_path, &named) < 0 || held.st_ino != named.st_ino ||
	    held.st_dev != named.st_dev)
		return 0;
	p->lock_fd = TAKE_FD(fd);
	return 1;
}

static int lock_place(struct pool_place *p, struct error *err)
{
	int r = 0;

	for (int i = 0; i < LOCK_TRIES && r == 0; i++)
		r = try_lock(p);
	if (r == -EWOULDBLOCK)
		return error_set(err, ERROR_INPUT, EADDRINUSE,
				 "a pool runs on '%.200s' already; end it first, or give this one "
				 "another socket",
				 p->path);
	if (r <= 0)
		return error_set(err, ERROR_STORAGE, r ? -r : EBUSY, "cannot lock '%.200s': %s",
				 p->lock_path, strerror(r ? -r : EBUSY));
	return 0;
}

/* This process holds the lock, so no pool listens there. */
static int remove_stale(const char *path, struct error *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, ERROR_INPUT, ENOTSOCK,
				 "'%.200s' is there already and is no socket; give another path",
				 path);
	return unlink(path) < 0
		       ? error_set(err, ERROR_STORAGE, errno,
				   "cannot replace the socket '%.200s': %s", path, strerror(errno))
		       : 0;
}

static int listen_at(struct pool_place *p, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(p->path);

	if (n >= sizeof(address.sun_path))
		return error_set(err, ERROR_INPUT, ENAMETOOLONG,
				 "the socket's path is longer than %zu bytes: '%.200s'",
				 sizeof(address.sun_path) - 1, p->path);
	memcpy(address.sun_path, p->path, n);
	p->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Created with its mode: no other user can connect in between. */
	if (p->listen_fd < 0 || fchmod(p->listen_fd, 0600) < 0 ||
	    bind(p->listen_fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(p->listen_fd, POOL_BACKLOG) < 0)
		return error_set(err, ERROR_STORAGE, errno, "cannot listen on '%.200s': %s",
				 p->path, strerror(errno));
	return 0;
}

static int take_place(struct pool_place *p, struct error *err)
{
	int r;

	if (!p->path || asprintf(&p->lock_path, "%s.lock", p->path) < 0) {
		p->lock_path = NULL;
		return error_oom(err);
	}
	r = make_directory(p, err);
	if (r >= 0)
		r = lock_place(p, err);
	if (r >= 0)
		r = remove_stale(p->path, err);
	if (r >= 0)
		r = listen_at(p, err);
	return r;
}

static void place_done(struct pool_place *p)
{
	struct stat st;

	if (p->listen_fd >= 0)
		(void)unlink(p->path);
	p->listen_fd = fd_close(p->listen_fd);
	/*
	 * Removed while locked: a process that opened it before sees that the name now belongs to another file.
	 */
	if (p->lock_fd >= 0)
		(void)unlink(p->lock_path);
	/* Later than that: a process that made the directory, and lost the lock, could not remove it before. */
	if (p->lock_fd >= 0 && fstat(p->lock_fd, &st) == 0 && st.st_size > 0)
		p->made_dir = true;
	p->lock_fd = fd_close(p->lock_fd);
	/* Unless the directory holds other files. */
	if (p->made_dir)
		(void)rmdir(p->dir);
	free(p->dir);
	free(p->lock_path);
	free(p->path);
}

static int find_place(const char *option, struct pool_place *p, struct error *err)
{
	int r = option ? 0 : pool_place_usual(&p->path);

	if (option)
		p->path = strdup(option);
	if (r == 0 && !option && !p->path)
		return error_set(
			err, ERROR_INPUT, ENOENT,
			"no place for the pool's socket: XDG_RUNTIME_DIR is not set; give a "
			"path");
	return p->path ? 0 : error_oom(err);
}

int pool_serve_at(const struct pool_settings *s, struct error *err)
{
	_cleanup_(registry_cleanup) struct registry *reg = NULL;
	_cleanup_(broker_choice_done) struct broker_choice choice = { .warm = true };
	struct broker_options options = { .front_fd = -EBADF,
					  .listen_fd = s->listen_fd,
					  .warm = &choice.table,
					  .front_uid = s->front_uid,
					  .lifeline_fd = s->lifeline_fd,
					  .workspaces = s->workspaces,
					  .sources = s->sources };
	int r = registry_new(s->data_dir, &reg, err);

	if (r >= 0)
		r = broker_choice_warm(&choice, reg, s->data_dir, err);
	if (r < 0)
		return r;
	options.bounds = choice.bounds;
	options.bounds.spares = s->spares;
	if (s->memory_bytes > 0)
		options.bounds.memory_bytes = s->memory_bytes;
	return broker_serve(&options) == 0 ? 0
					   : error_set(err, ERROR_INTERNAL, EIO,
						       "the broker failed; see: atoll doctor");
}

static int pool_serve(const struct atoll_pool_options *o, struct error *err)
{
	_cleanup_(place_done) struct pool_place place = { .lock_fd = -EBADF, .listen_fd = -EBADF };
	_cleanup_(registry_cleanup) struct registry *reg = NULL;
	_cleanup_(broker_choice_done) struct broker_choice choice = { .warm = true };
	_cleanup_free_ char *data_dir = NULL;
	struct workspace_place workspaces[3] = { any_directory };
	struct broker_options options = { .front_fd = -EBADF,
					  .warm = &choice.table,
					  .workspaces = workspaces };
	int r = data_find(o->data_dir, &data_dir, err);

	if (r >= 0 && workspaces_path(&choice.workspaces) < 0)
		r = error_oom(err);
	workspaces[1] = workspaces_below(choice.workspaces);
	if (r >= 0)
		r = registry_new(data_dir, &reg, err);
	if (r >= 0)
		r = broker_choice_warm(&choice, reg, data_dir, err);
	if (r >= 0)
		r = find_place(o->socket, &place, err);
	if (r >= 0)
		r = take_place(&place, err);
	if (r < 0)
		return r;
	options.listen_fd = place.listen_fd;
	options.bounds = choice.bounds;
	if (o->memory_bytes > 0)
		options.bounds.memory_bytes = o->memory_bytes;
	if (o->spares)
		options.bounds.spares = (uint32_t)MAX(o->spares, 0);
	options.bounds.forks = (uint32_t)MAX(o->rotate_forks, 0);
	options.bounds.age_ms = (int64_t)MAX(o->rotate_seconds, 0) * 1000;
	options.bounds.idle_ms = (int64_t)MAX(o->idle_seconds, 0) * 1000;
	options.leave_ms = (int64_t)MAX(o->leave_seconds, 0) * 1000;
	if (o->on_ready)
		o->on_ready(o->data, place.path);
	return broker_serve(&options) == 0
		       ? 0
		       : error_set(err, ERROR_INTERNAL, EIO, "the pool failed; see: atoll doctor");
}

int atoll_pool(const struct atoll_pool_options *options, char **problem)
{
	struct atoll_pool_options given = { .size = sizeof(given) };
	struct sigaction child = { .sa_handler = SIG_DFL }, child_before;
	struct error err = { 0 };
	sigset_t ends, before;
	int r;

	if (options)
		memcpy(&given, options, MIN(options->size, sizeof(given)));
	/* The broker reads these signals itself. This process's handlers would leave the socket behind. */
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &ends, &before);
	(void)sigaction(SIGCHLD, &child, &child_before);
	r = pool_serve(&given, &err);
	(void)sigaction(SIGCHLD, &child_before, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0 && problem)
		*problem = strdup(err.text);
	return r < 0 ? r : 0;
}
