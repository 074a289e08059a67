/* SPDX-License-Identifier: Apache-2.0 */
/* See zygote.h. Code between fork and exec uses no heap and no stdio: its words are made before the fork. */
#include "broker/warm/zygote.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/child.h"
#include "box/net.h"
#include "broker/warm/reaper.h"
#include "broker/warm/room.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ZYGOTE_WORDS_MAX = 128, WORD_ROOM = 4 * PATH_MAX, START_MS_MAX = 30000, END_MS_MAX = 5000 };

/* Everything that the process between fork and exec needs. */
struct start {
	const struct zygote_host *host;
	const char *argv[ZYGOTE_WORDS_MAX + 1], *env[ZYGOTE_WORDS_MAX + 1];
	int socket_fd;
	const struct shape *shape;
	uint32_t uid;			       /* 0: the uid stays */
	int join_fds[CGROUP_JOIN_MAX], n_join; /* of the group of its room */
	bool bare, guest;
	char room[WORD_ROOM]; /* for changed words */
	size_t used;
};

/*
 * Gives the zygote a mount namespace of its own. Every sandbox begins with a copy of it and takes that down
 * again. So trees that no plan shows and no program needs are unmounted here: the kernel's knobs and groups.
 * Directories that an interpreter may write to while it loads are its own, and end with it.
 */
static int arrange_mounts(const char *runners, bool bare)
{
	static const char *const unused[] = { "/sys", "/run" };
	static const char *const writable[] = { "/tmp", "/var/tmp", "/dev/shm" };
	int tree = -EBADF, r = sys_unshare(CLONE_NEWNS);

	if (r == 0)
		r = sys_mount(
			&(struct mount_request){ .target = "/", .flags = MS_REC | MS_PRIVATE });
	for (size_t i = 0; i < ARRAY_SIZE(unused); i++)
		(void)!sys_umount_detach(unused[i]);
	/* The mounts below may hide the runners, so their tree is cloned first. */
	if (r == 0 && !bare && runners)
		r = tree = sys_clone_mount(AT_FDCWD, runners);
	for (size_t i = 0; r >= 0 && !bare && i < ARRAY_SIZE(writable); i++) {
		r = sys_mount(&(struct mount_request){ .source = "tmpfs",
						       .target = writable[i],
						       .type = "tmpfs",
						       .flags = MS_NOSUID | MS_NODEV,
						       .data = "size=64m,mode=1777" });
		if (r == -ENOENT)
			r = 0;
	}
	if (r >= 0 && tree >= 0 && mkdir(WARM_RUNNERS, 0755) < 0)
		r = -errno;
	if (r >= 0 && tree >= 0)
		r = sys_move_mount(tree, WARM_RUNNERS);
	return r < 0 ? r : 0;
}

/*
 * Makes the skeleton. Programs can read all files that are copied into it. So the zygote makes it not as root
 * but as its own user, which can read no more than programs can. If this fails, the zygote goes on: each
 * sandbox then makes its own root.
 */
static void try_skeleton(const struct shape *shape)
{
	struct child builder = { .plan = &shape->view };

	if (child_make_skeleton(&builder) < 0)
		(void)!sys_umount_detach(CHILD_SKELETON_PLACE);
}

/*
 * Across exec a user other than root keeps only ambient capabilities; cloner_open() takes them out of effect at
 * once.
 */
static int keep_capabilities(uint32_t uid)
{
	static const unsigned long kept[] = { CAP_SETUID, CAP_SYS_ADMIN };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };
	int r = sys_prctl(PR_SET_KEEPCAPS, 1, 0);

	if (r == 0)
		r = sys_setids(uid);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		caps[0].permitted |= 1U << kept[i];
	caps[0].effective = caps[0].inheritable = caps[0].permitted;
	if (r == 0 && syscall(SYS_capset, &header, caps) < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kept); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0)
			r = -errno;
	return r;
}

static int place_fds(const struct start *s)
{
	const int from[] = { s->socket_fd, s->bare ? s->host->bare_fd : s->host->agent_fd,
			     s->host->sandboxes->init_fd };
	const int to[] = { WARM_FD, WARM_AGENT_FD, ZYGOTE_INIT_FD };
	int pair[2], high[ARRAY_SIZE(from)], r = 0;

	/*
	 * The streams are pipes, as a program's are: an interpreter looks at its streams once, when it starts.
	 */
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	/* All descriptors move to high numbers first: any of them may have a number that another one needs. */
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(pair); i++)
		r = pair[i] = sys_dup_above(pair[i], ZYGOTE_INIT_FD + 1);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(from); i++)
		r = high[i] = sys_dup_above(from[i], ZYGOTE_INIT_FD + 1);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(from); i++)
		r = sys_dup2(high[i], to[i]);
	if (r >= 0)
		r = sys_dup2(pair[0], STDIN_FILENO);
	if (r >= 0)
		r = sys_dup2(pair[1], STDOUT_FILENO);
	return r < 0 ? r : sys_close_others(to, ARRAY_SIZE(to));
}

static void write_text(const char *path, const char *text)
{
	int fd = sys_open(path, O_WRONLY, 0);

	if (fd >= 0)
		(void)!sys_write(fd, text, strlen(text));
	(void)close(fd);
}

static _noreturn_ void become_zygote(const struct start *s)
{
	sigset_t none;
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);

	/*
	 * Sandboxes inherit this from the zygote: when the host runs out of memory, they are killed first. Best
	 * effort.
	 */
	write_text("/proc/self/oom_score_adj", "500");
	sys_default_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	for (int i = 0; r == 0 && i < s->n_join; i++)
		r = sys_write(s->join_fds[i], "0", 1);
	if (r == 0)
		r = place_fds(s);
	if (r == 0 && s->uid)
		r = arrange_mounts(s->host->runners, s->bare);
	if (r == 0 && s->uid)
		r = s->guest ? sys_setids(s->uid) : keep_capabilities(s->uid);
	if (r == 0)
		r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	/* A change of user clears the death signal. */
	if (r == 0)
		r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	if (r == 0 && s->uid && s->shape)
		try_skeleton(s->shape);
	if (r < 0 || chdir("/") < 0)
		_exit(126);
	if (s->bare)
		(void)sys_execveat(WARM_AGENT_FD, (char *const *)(uintptr_t)s->argv,
				   (char *const *)(uintptr_t)s->env);
	else
		(void)execve(s->argv[0], (char *const *)(uintptr_t)s->argv,
			     (char *const *)(uintptr_t)s->env);
	_exit(126);
}

/* The word, with the runners' directory replaced by its place in the zygote. NULL: there is no room. */
static const char *localize(struct start *s, const char *word)
{
	const char *runners = s->uid ? s->host->runners : NULL;
	const char *at = runners ? strstr(word, runners) : NULL;
	char *ret = s->room + s->used;
	int n;

	if (!at)
		return word;
	n = snprintf(ret, sizeof(s->room) - s->used, "%.*s%s%s", (int)(at - word), word,
		     WARM_RUNNERS, at + strlen(runners));
	if (n < 0 || (size_t)n >= sizeof(s->room) - s->used)
		return NULL;
	s->used += (size_t)n + 1;
	return ret;
}

static size_t add_zygote_words(struct start *s, const char **list, size_t n,
			       const char *const *words)
{
	for (; words && *words && n < ZYGOTE_WORDS_MAX; words++) {
		list[n] = localize(s, *words);
		n += list[n] != NULL;
	}
	return n;
}

static int take_room(const struct zygote_host *host, struct start *s, struct zygote *z)
{
	int r = room_new(host->sandboxes, &z->room);

	if (r < 0)
		return r;
	s->guest = true;
	s->uid = z->room->host_id;
	s->n_join = host->sandboxes->cgroups->join_fds(z->room->cgroup, s->join_fds);
	return MIN(s->n_join, 0);
}

/* Puts the zygote into the cgroup of its room, where a process cannot join by itself. */
static int enter_room(const struct zygote *z)
{
	const struct cgroup_ops *cgroups = z->host->sandboxes->cgroups;
	struct error err = { 0 };

	if (!z->room || cgroups->clone_fd(z->room->cgroup) < 0)
		return 0;
	return cgroups->attach(z->room->cgroup, z->pid, &err);
}

static void leave_room(struct zygote *z)
{
	if (!z->room)
		return;
	room_clear(z->room);
	reaper_take(z->host->reaper, TAKE_PTR(z->room));
}

static int spawn(const struct zygote_host *host, const struct zygote_options *options,
		 struct zygote *z)
{
	static const char *const agent_env[] = { AGENT_PRELOAD, AGENT_VARIABLE "=" AGENT_ZYGOTE,
						 NULL };
	static const char *const bare_argv[] = { "atoll-bare", NULL };
	const struct host_facts *facts = &host->sandboxes->facts;
	struct start s = { .host = host, .uid = facts->privileged ? facts->uid_base - 1 : 0 };
	_cleanup_close_ int far_end = -EBADF;
	int pair[2], r;
	size_t n;

	if (options->guest && facts->privileged) {
		r = take_room(host, &s, z);
		if (r < 0)
			return r;
	}
	n = add_zygote_words(&s, s.argv, 0, options->runtime ? options->runtime->argv : bare_argv);
	(void)add_zygote_words(&s, s.argv, n, options->modules);
	if (options->runtime) {
		n = add_zygote_words(&s, s.env, 0, agent_env);
		(void)add_zygote_words(&s, s.env, n, options->runtime->env);
	}
	s.bare = !options->runtime;
	if (s.uid && options->shape && options->shape->tree) {
		/* A guest has no right to mount, so it has no skeleton. */
		s.shape = s.guest ? NULL : options->shape;
		z->sources = plan_tree_sources(&options->shape->view);
		z->tree = options->shape->tree;
	}
	if (!s.argv[0])
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	z->fd = pair[0];
	far_end = s.socket_fd = pair[1];
	z->pid = fork();
	if (z->pid == 0)
		become_zygote(&s);
	if (z->pid < 0)
		return -errno;
	r = enter_room(z);
	if (r < 0)
		return r;
	z->pidfd = sys_pidfd_open(z->pid);
	return z->pidfd < 0 ? z->pidfd : fd_set_nonblock(z->fd, true);
}

static void change(struct zygote *z, enum zygote_state state)
{
	if (z->state == state || z->state == ZYGOTE_DEAD)
		return;
	z->state = state;
	source_set_time(z->deadline, INT64_MAX);
	if (z->on_change)
		z->on_change(z->data, z);
}

/*
 * The zygote runs no tenant's code. Still, the broker accepts nothing but READY from it, and kills it for
 * anything else.
 */
static int on_socket(void *data, uint32_t events)
{
	struct zygote *z = data;
	struct zygote_record rec;
	ssize_t n = sys_recv_record(z->fd, &rec, sizeof(rec), NULL, NULL);

	(void)events;
	if (n == -EAGAIN)
		return 0;
	if (n == (ssize_t)sizeof(rec) && rec.kind == ZYGOTE_READY) {
		z->skeleton = rec.skeleton && z->tree;
		change(z, ZYGOTE_IS_READY);
		return 0;
	}
	z->socket = source_free(z->socket);
	if (z->pid > 0)
		(void)kill(z->pid, SIGKILL);
	return 0;
}

/* The zygote is not READY in time, or does not end in time. */
static int on_zygote_deadline(void *data, uint32_t events)
{
	struct zygote *z = data;

	(void)events;
	if (z->pid > 0)
		(void)kill(z->pid, SIGKILL);
	return 0;
}

static int on_zygote_death(void *data, uint32_t events)
{
	struct zygote *z = data;

	(void)events;
	(void)waitpid(z->pid, NULL, 0);
	z->pid = 0;
	leave_room(z);
	z->death = source_free(z->death);
	z->socket = source_free(z->socket);
	if (!z->on_change) {
		for (struct zygote **at = &z->host->retired; *at; at = &(*at)->next)
			if (*at == z) {
				*at = z->next;
				break;
			}
		(void)zygote_free(z);
		return 0;
	}
	change(z, ZYGOTE_DEAD);
	return 0;
}

void zygote_retire(struct zygote *z)
{
	if (!z)
		return;
	if (z->state == ZYGOTE_DEAD) {
		(void)zygote_free(z);
		return;
	}
	z->on_change = NULL;
	z->socket = source_free(z->socket);
	z->fd = fd_close(z->fd);
	z->next = z->host->retired;
	z->host->retired = z;
	source_set_time(z->deadline, clock_now_ns() + END_MS_MAX * NS_PER_MS);
}

void zygote_host_done(struct zygote_host *host)
{
	/* All zygotes are killed before the broker waits for the first: each takes its time to die. */
	for (const struct zygote *z = host->retired; z; z = z->next)
		if (z->pid > 0)
			(void)kill(z->pid, SIGKILL);
	while (host->retired) {
		struct zygote *z = host->retired;

		host->retired = z->next;
		(void)zygote_free(z);
	}
}

static void zygote_cleanup(struct zygote **z)
{
	(void)zygote_free(*z);
}

int zygote_start(struct zygote_host *host, const struct zygote_options *options,
		 struct zygote **ret)
{
	_cleanup_(zygote_cleanup) struct zygote *z = calloc(1, sizeof(*z));
	int r;

	if (!z)
		return -ENOMEM;
	*z = (struct zygote){ .host = host,
			      .fd = -EBADF,
			      .pidfd = -EBADF,
			      .born_ns = clock_now_ns(),
			      .on_change = options->on_change,
			      .data = options->data };
	r = spawn(host, options, z);
	if (r == 0)
		r = loop_add_fd(host->loop, z->fd, EPOLLIN, (struct handler){ on_socket, z },
				&z->socket);
	if (r == 0)
		r = loop_add_fd(host->loop, z->pidfd, EPOLLIN,
				(struct handler){ on_zygote_death, z }, &z->death);
	if (r == 0)
		r = loop_add_timer(host->loop, z->born_ns + START_MS_MAX * NS_PER_MS,
				   (struct handler){ on_zygote_deadline, z }, &z->deadline);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(z);
	return 0;
}

int zygote_fork(struct zygote *z, struct sandbox *sb, const struct zygote_ends *ends, bool warm_up)
{
	int cgroup_fd = sb->cgroup && !z->room ? sb->host->cgroups->clone_fd(sb->cgroup) : -EBADF;
	struct zygote_record req = { .kind = ZYGOTE_FORK,
				     .owner = sb->owned && !z->room ? sb->host_id : 0,
				     .program = ends->program_fd >= 0,
				     .net = sb->net != NULL,
				     .cgroup = cgroup_fd >= 0,
				     .warm_up = warm_up,
				     .skeleton = z->skeleton && z->tree == ends->tree };
	int fds[4] = { ends->control_fd }, r;
	size_t n = 1;

	if (z->state != ZYGOTE_IS_READY)
		return -EAGAIN;
	sb->cloned_apart = z->room != NULL;
	if (ends->program_fd >= 0)
		fds[n++] = ends->program_fd;
	if (sb->net)
		fds[n++] = net_fd(sb->net);
	if (cgroup_fd >= 0)
		fds[n++] = cgroup_fd;
	r = sys_send_record(z->fd, &req, sizeof(req), fds, n);
	if (r == 0)
		z->forks++;
	return r;
}

struct zygote *zygote_free(struct zygote *z)
{
	if (!z)
		return NULL;
	z->socket = source_free(z->socket);
	z->death = source_free(z->death);
	z->deadline = source_free(z->deadline);
	z->fd = fd_close(z->fd);
	if (z->pid > 0) {
		(void)kill(z->pid, SIGKILL);
		(void)waitpid(z->pid, NULL, 0);
	}
	leave_room(z);
	z->pidfd = fd_close(z->pidfd);
	free(z);
	return NULL;
}
