/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cloner.h. If programs are forked from clones, the clone shares the zygote's memory and the zygote waits (as
 * with vfork), so the interpreter's pages are copied once and not twice:
 *
 *   zygote ──clone3, memory shared──▶ pid 1: child_main(): namespaces, mounts, lock-down
 *      ┊ waits                          ├─ fork ─▶ pid 2: the program, returns from the interpreter's fork()
 *      ◀──────────── goes on ────────── └─ exec ─▶ init
 *
 * A clone is the broker's child (CLONE_PARENT), so sandboxes live on when their zygote ends.
 */
#include "agent/cloner.h"

#include "base/sys/kernel.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The two capabilities that a privileged broker leaves the zygote, effective only while a clone is made. */
enum { CLONE_CAPS = 1U << CAP_SETUID | 1U << CAP_SYS_ADMIN };

/* The beginning of a line of /proc/self/maps: two addresses and the rights. */
enum { MAPS_HEAD = 48 };

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	return syscall(SYS_capget, &header, caps) == 0 && caps[0].permitted != 0;
}

static void use_capabilities(bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	if (syscall(SYS_capget, &header, caps) < 0)
		return;
	caps[0].effective = on ? caps[0].permitted & CLONE_CAPS : 0;
	caps[1].effective = 0;
	caps[0].inheritable = caps[1].inheritable = 0;
	(void)syscall(SYS_capset, &header, caps);
}

/*
 * A change of credentials clears the death signal. While a clone shares the zygote's memory, the zygote waits,
 * and nothing else would end it when the broker dies.
 */
static void end_with_broker(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/*
 * If memory is shared, this returns twice on one stack. The clone's frames lie below the zygote's, and the
 * clone never returns from the first function it calls. Inline, because a wrapper's return address would be
 * overwritten.
 */
static inline __attribute__((always_inline)) long clone_raw(struct clone_args *args)
{
	long r;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(SYS_clone3), "D"(args), "S"(sizeof(*args))
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_clone3;
	register long first __asm__("x0") = (long)args;
	register long second __asm__("x1") = sizeof(*args);

	__asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
	r = first;
#else
	(void)args;
	r = -ENOSYS;
#endif
	return r;
}

static _noreturn_ void cell_main(struct child *cell)
{
	const struct report hello = { .kind = REPORT_HELLO };

	end_with_broker();
	(void)sys_send_record(cell->control_fd, &hello, sizeof(hello), NULL, 0);
	child_main(cell);
}

static bool is_single_threaded(void)
{
	struct stat st;

	/* ".", ".." and one thread. */
	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/*
 * Whether a line of /proc/self/maps, "start-end rwxs …", is memory that all children could write to and share.
 * Memory that is read-only now counts if mprotect() could make it writable. It cannot if the mapped file was
 * opened for reading (libc's table of converters): EACCES.
 */
static bool is_common_memory(const char *line)
{
	unsigned long start;
	char rights[5];

	if (sscanf(line, "%lx-%*x %4s", &start, rights) != 2)
		return true;
	if (rights[3] != 's')
		return false;
	return rights[1] == 'w' || mprotect((void *)start, 1, PROT_READ | PROT_WRITE) == 0 ||
	       errno != EACCES;
}

/* The file is read in pieces; a line may lie in several of them. */
int cloner_read_maps(void (*tell)(void *data, const char *line), void *data)
{
	int fd = sys_open("/proc/self/maps", O_RDONLY, 0);
	char piece[1024], line[MAPS_HEAD + 1] = "";
	size_t len = 0;
	ssize_t n = fd;

	while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (piece[i] != '\n' && len < MAPS_HEAD)
				line[len++] = piece[i];
			if (piece[i] != '\n')
				continue;
			line[len] = '\0';
			tell(data, line);
			len = 0;
		}
	(void)close(fd);
	return n < 0 ? -EIO : 0;
}

static void note_common_memory(void *data, const char *line)
{
	bool *found = data;

	*found = *found || is_common_memory(line);
}

/* Also true if the maps cannot be read. */
static bool has_common_memory(void)
{
	bool found = false;

	return cloner_read_maps(note_common_memory, &found) < 0 || found;
}

static __attribute__((noinline)) int clone_cell(struct cloner *c, const struct zygote_record *req,
						int net_fd, int cgroup_fd)
{
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
			 (c->fork_program ? CLONE_VM | CLONE_VFORK : 0) |
			 (req->cgroup ? CLONE_INTO_CGROUP : 0),
		.cgroup = req->cgroup ? (uint64_t)cgroup_fd : 0,
	};
	long r;

	if (req->net) {
		r = sys_setns(net_fd, CLONE_NEWNET);
		if (r < 0)
			return (int)r;
	}
	/* The file system uid is root's: cloning into a cgroup needs access to its files, which are root's. */
	if (req->owner &&
	    (syscall(SYS_setresuid, -1, req->owner, -1) < 0 || syscall(SYS_setfsuid, 0) < 0))
		return -errno;
	end_with_broker();
	r = clone_raw(&args);
	if (r == 0)
		cell_main(&c->cell);
	return (int)r;
}

/*
 * Takes back what was changed for a clone: user, network namespace and capabilities. A clone that shares memory
 * has executed init by now, or has failed and reported it, so its plan is unmapped as well.
 */
static void clean_up(struct cloner *c, const struct zygote_record *req)
{
	if (req->owner)
		(void)syscall(SYS_setresuid, -1, getuid(), -1);
	if (req->net)
		(void)!sys_setns(c->home_net_fd, CLONE_NEWNET);
	use_capabilities(false);
	end_with_broker();
	if (c->cell.mapped.base)
		(void)munmap(c->cell.mapped.base, c->cell.mapped.size);
}

void cloner_serve(struct cloner *c)
{
	struct zygote_record req;
	int fds[4];
	size_t n_fds = ARRAY_SIZE(fds), at = 1;
	ssize_t n = sys_recv_record(WARM_FD, &req, sizeof(req), fds, &n_fds);
	int program_fd = -EBADF, net_fd = -EBADF, cgroup_fd = -EBADF, r = -EBUSY;

	/* If the socket is closed, the broker does not need this zygote any more. */
	if (n != (ssize_t)sizeof(req) || req.kind != ZYGOTE_FORK ||
	    n_fds != 1U + (req.program != 0) + (req.net != 0) + (req.cgroup != 0))
		_exit(0);
	if (req.program)
		program_fd = fds[at++];
	if (req.net)
		net_fd = fds[at++];
	if (req.cgroup)
		cgroup_fd = fds[at];
	c->cell = (struct child){ CHILD_NO_FDS,
				  .host = &c->host,
				  .control_fd = fds[0],
				  .keep_fd = program_fd,
				  .fork_program = c->fork_program,
				  .net_given = req.net,
				  .skeleton = req.skeleton,
				  .signals_kept = true };
	c->warm_up = req.warm_up;
	if (is_single_threaded()) {
		use_capabilities(true);
		r = clone_cell(c, &req, net_fd, cgroup_fd);
		clean_up(c, &req);
	}
	if (r < 0) {
		const struct report failed = { .kind = REPORT_FAILED, .errnum = -r };

		(void)sys_send_record(fds[0], &failed, sizeof(failed), NULL, 0);
	}
	for (size_t i = 0; i < n_fds; i++)
		(void)close(fds[i]);
}

int cloner_open(struct cloner *c)
{
	int home_fd;

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	use_capabilities(false);
	/*
	 * Only root may look into a zygote with capabilities. An ordinary user's broker must be able to look
	 * into its zygotes, which have none.
	 */
	if (has_capabilities())
		(void)prctl(PR_SET_DUMPABLE, 0);
	/* Above the numbers that an interpreter uses. */
	home_fd = sys_open("/proc/self/ns/net", O_RDONLY, 0);
	c->home_net_fd = home_fd < 0 ? home_fd : sys_dup_above(home_fd, ZYGOTE_INIT_FD + 1);
	(void)close(home_fd);
	c->host.init_fd = ZYGOTE_INIT_FD;
	if (fcntl(WARM_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ZYGOTE_INIT_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return c->home_net_fd < 0 ? c->home_net_fd : filter_build_all(c->host.filters);
}

int cloner_ready(void)
{
	struct stat st;
	const struct zygote_record ready = {
		.kind = ZYGOTE_READY,
		.skeleton = stat(CHILD_SKELETON_PLACE "/skeleton", &st) == 0,
	};

	if (!is_single_threaded())
		return -EBUSY;
	return has_common_memory() ? -EPERM
				   : sys_send_record(WARM_FD, &ready, sizeof(ready), NULL, 0);
}
