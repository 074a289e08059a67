/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See deeds.h. Each deed undoes what it did, so that it can go on for as long as it is let. What it returns is of no interest: on
 * one kernel or in one sandbox it is refused, on another it is not.
 */
#include "deeds.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "plan/filter-table.h"

enum { PAGE = 4096 };

static char *room;

static void do_socket(const int *with)
{
	(void)close(socket(with[0], with[1], 0));
}

static void do_socket_ioctl(const int *with)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(with[1], SOCK_DGRAM, 0);

	(void)ioctl(fd, (unsigned long)with[0], &request);
	(void)close(fd);
}

static void do_file_ioctl(const int *with)
{
	static const char *const paths[] = { "/dev/null", "/dev/urandom", "file",
					     "/proc/self/ns/net" };
	char value[4096] = { 0 };
	int fd = open(paths[with[1]], O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fd = open(paths[with[1]], O_RDONLY | O_CLOEXEC);
	(void)ioctl(fd, (unsigned long)(unsigned)with[0], value);
	(void)close(fd);
}

static void do_fcntl(const int *with)
{
	int fd = with[1] == 0	? open("file", O_RDWR | O_CLOEXEC)
		 : with[1] == 1 ? memfd_create("m", MFD_ALLOW_SEALING | MFD_CLOEXEC)
				: eventfd(0, EFD_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK };
	int copy;
	bool by_pointer = (with[0] >= F_GETLK && with[0] <= F_SETLKW) ||
			  (with[0] >= F_OFD_GETLK && with[0] <= F_OFD_SETLKW);

	(void)!write(fd, "12345678", 8);
	copy = fcntl(fd, with[0], by_pointer ? (long)&lock : 1);
	if (with[0] == F_DUPFD || with[0] == F_DUPFD_CLOEXEC)
		(void)close(copy);
	(void)close(fd);
}

static void do_madvise(const int *with)
{
	memset(room, 1, PAGE);
	(void)madvise(room, ROOM / 2, with[0]);
	(void)madvise(room, ROOM / 2, 103); /* MADV_GUARD_REMOVE, after 102 */
}

static void do_madvise_file(const int *with)
{
	int fd = open("file", O_RDWR | O_CLOEXEC);
	char *at = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	at[0]++;
	(void)madvise(at, 1 << 16, with[0]);
	(void)munmap(at, 1 << 16);
	(void)close(fd);
}

static void do_fadvise(const int *with)
{
	int fd = open("file", O_RDWR | O_CLOEXEC);

	(void)!pwrite(fd, room, PAGE, 0);
	(void)posix_fadvise(fd, 0, 0, with[0]);
	(void)close(fd);
}

static void do_seal(const int *with)
{
	int fd = memfd_create("m", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	(void)!write(fd, room, PAGE);
	(void)fcntl(fd, F_ADD_SEALS, with[0]);
	(void)close(fd);
}

static void do_membarrier(const int *with)
{
	(void)syscall(SYS_membarrier, with[0], 0, 0);
}

static void do_prctl(const int *with)
{
	unsigned long value = 0;

	(void)prctl(with[0], with[1] ? (unsigned long)&value : 0, 0, 0, 0);
}

static void do_arch_prctl(const int *with)
{
#ifdef SYS_arch_prctl
	unsigned long value = 0;

	(void)syscall(SYS_arch_prctl, with[0], with[1] ? (unsigned long)&value : 1);
#else
	(void)with;
#endif
}

static void do_mapping(const int *with)
{
	char *at = mmap(NULL, (size_t)with[0], PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | with[1], -1, 0);

	if (at == MAP_FAILED)
		return;
	at[0] = 1;
	(void)mprotect(at, (size_t)with[0], PROT_READ);
	(void)mremap(at, (size_t)with[0], (size_t)with[0] / 2, 0);
	(void)munmap(at, (size_t)with[0] / 2);
}

static void do_lock_memory(const int *with)
{
	if (with[0] == 0) {
		(void)mlock(room, PAGE);
		(void)munlock(room, PAGE);
	} else {
		(void)mlockall(with[0]);
		(void)munlockall();
	}
}

static void do_pkey(const int *with)
{
	int key = (int)syscall(SYS_pkey_alloc, 0, 0);

	(void)with;
	(void)syscall(SYS_pkey_mprotect, room, PAGE, PROT_READ | PROT_WRITE, key);
	(void)syscall(SYS_pkey_free, key);
}

static void do_affinity(const int *with)
{
	static int cpu;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(with[0] ? cpu++ % with[0] : 0, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	if (!with[0]) {
		memset(&set, 0xff, sizeof(set));
		(void)sched_setaffinity(0, sizeof(set), &set);
	}
}

static void do_scheduler(const int *with)
{
	struct sched_param param = { 0 };

	(void)sched_setscheduler(0, with[0], &param);
	(void)sched_setscheduler(0, SCHED_OTHER, &param);
	(void)setpriority(PRIO_PROCESS, 0, 0);
}

static void do_itimer(const int *with)
{
	struct itimerval value = { .it_value = { .tv_sec = 100 } }, off = { 0 };

	(void)setitimer((enum __itimer_which)with[0], &value, NULL);
	(void)setitimer((enum __itimer_which)with[0], &off, NULL);
}

static void do_timer(const int *with)
{
	struct itimerspec value = { .it_value = { .tv_sec = 100 } };
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	if (timer_create(with[0], &event, &timer) < 0)
		return;
	(void)timer_settime(timer, 0, &value, NULL);
	(void)timer_delete(timer);
}

static void do_timerfd(const int *with)
{
	struct itimerspec value = { .it_value = { .tv_sec = 100 } };
	int fd = timerfd_create(with[0], TFD_CLOEXEC);

	(void)timerfd_settime(fd, with[1], &value, NULL);
	(void)close(fd);
}

static void do_poll_files(const int *with)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = eventfd(1, EFD_CLOEXEC);

	(void)with;
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	(void)epoll_wait(epoll, &event, 1, 0);
	(void)close(fd);
	(void)close(epoll);
}

static void do_inotify(const int *with)
{
	int fd = inotify_init1(IN_CLOEXEC);

	(void)with;
	(void)inotify_add_watch(fd, ".", IN_ALL_EVENTS);
	(void)close(fd);
}

static void do_files(const int *with)
{
	int fd = open("other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)with;
	(void)!write(fd, room, 8 * PAGE);
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE);
	(void)ftruncate(fd, PAGE);
	(void)fsetxattr(fd, "user.x", "1", 1, 0);
	(void)syscall(SYS_flock, fd, 2);
	(void)fsync(fd);
	(void)sync_file_range(fd, 0, 0, 7);
	(void)close(fd);
	(void)link("other", "third");
	(void)rename("third", "other");
	(void)unlink("other");
}

static void do_sync(const int *with)
{
	(void)with;
	sync();
}

static void do_write_proc(const int *with)
{
	static const struct {
		const char *path, *text;
	} files[] = {
		{ "/proc/self/oom_score_adj", "500" }, { "/proc/self/clear_refs", "1" },
		{ "/proc/self/clear_refs", "4" },      { "/proc/self/coredump_filter", "0x33" },
		{ "/proc/self/timerslack_ns", "1" },   { "/proc/self/comm", "x" },
		{ "/proc/self/autogroup", "0" },       { "/proc/self/sched", "0" },
		{ "/proc/self/latency", "0" }
	};
	int fd = open(files[with[0]].path, O_WRONLY | O_CLOEXEC);

	(void)!write(fd, files[with[0]].text, strlen(files[with[0]].text));
	(void)close(fd);
}

static void do_ipc(const int *with)
{
	int id = with[0] == 0	? shmget(IPC_PRIVATE, PAGE, 0600)
		 : with[0] == 1 ? semget(IPC_PRIVATE, 1, 0600)
				: msgget(IPC_PRIVATE, 0600);

	if (with[0] == 0) {
		char *at = shmat(id, NULL, 0);

		at[0] = 1;
		(void)shmdt(at);
		(void)shmctl(id, IPC_RMID, NULL);
	} else if (with[0] == 1) {
		(void)semctl(id, 0, IPC_RMID);
	} else {
		(void)msgctl(id, IPC_RMID, NULL);
	}
}

static void do_queue(const int *with)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };

	(void)with;
	(void)mq_close(mq_open("/x", O_RDWR | O_CREAT, 0600, &attr));
	(void)mq_unlink("/x");
}

static void do_pair(const int *with)
{
	int fds[2];

	if ((with[0] < 0 ? pipe(fds) : socketpair(AF_UNIX, with[0], 0, fds)) < 0)
		return;
	(void)!write(fds[1], "x", 1);
	(void)!read(fds[0], room, 1);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* Passes one end of a pair through itself and closes both: the kernel has to collect the cycle. */
static void do_cycle(const int *with)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec data = { room, 1 };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int fds[2];

	(void)with;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return;
	memcpy(CMSG_DATA(&control.header), &fds[0], sizeof(int));
	(void)sendmsg(fds[1], &message, 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void do_loopback(const int *with)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(to);
	int server = socket(AF_INET, with[0], 0),
	    client = socket(AF_INET, with[0] | SOCK_NONBLOCK, 0);

	(void)bind(server, (struct sockaddr *)&to, sizeof(to));
	(void)listen(server, 1);
	(void)getsockname(server, (struct sockaddr *)&to, &size);
	(void)connect(client, (struct sockaddr *)&to, sizeof(to));
	(void)send(client, "x", 1, MSG_NOSIGNAL);
	(void)close(client);
	(void)close(server);
}

static void do_netlink(const int *with)
{
	struct {
		struct nlmsghdr header;
		struct rtgenmsg body;
	} request = { { .nlmsg_len = sizeof(request),
			.nlmsg_type = (unsigned short)with[0],
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		      { 0 } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);

	(void)send(fd, &request, sizeof(request), 0);
	(void)recv(fd, room, 1 << 16, MSG_DONTWAIT);
	(void)close(fd);
}

static void *nothing(void *unused)
{
	return unused;
}

static void do_thread(const int *with)
{
	pthread_t thread;

	(void)with;
	if (pthread_create(&thread, NULL, nothing, NULL) == 0)
		(void)pthread_join(thread, NULL);
}

static void do_process(const int *with)
{
	pid_t pid = with[0] ? vfork() : fork();

	if (pid == 0) {
		if (with[1])
			(void)execl("/bin/true", "true", NULL);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void do_signal(const int *with)
{
	(void)with;
	(void)signal(SIGUSR1, SIG_IGN);
	(void)kill(getpid(), SIGUSR1);
}

static void do_pidfd(const int *with)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)with;
	(void)syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
	(void)close(fd);
}

static void add_each(const char *what, void (*once)(const int *), const int *values, size_t n)
{
	char name[48];

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "%s 0x%x %d", what, (unsigned)values[2 * i],
			       values[2 * i + 1]);
		(void)add(name, once, values[2 * i], values[2 * i + 1]);
	}
}

static void add_range(const char *what, void (*once)(const int *), int first, int last, int with)
{
	for (int value = first; value <= last; value++)
		add_each(what, once, (int[]){ value, with }, 1);
}

#define EACH(what, once, ...)                                                                      \
	add_each(what, once, (const int[]){ __VA_ARGS__ },                                         \
		 sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int) / 2)

void add_deeds(char *memory)
{
	const struct arg_switch *ioctls = &filter_switches[TO_SOCKET_IOCTL],
				*prctls = &filter_switches[TO_PRCTL];

	room = memory;
	EACH("socket", do_socket, AF_UNIX, SOCK_STREAM, AF_UNIX, SOCK_DGRAM, AF_INET, SOCK_STREAM,
	     AF_INET6, SOCK_STREAM, AF_INET6, SOCK_DGRAM, AF_NETLINK, SOCK_RAW);
	for (size_t i = 0; i < ioctls->n_cases; i++)
		for (uint32_t request = ioctls->cases[i].first; request <= ioctls->cases[i].last;
		     request++)
			EACH("socket ioctl", do_socket_ioctl, (int)request, AF_INET, (int)request,
			     AF_UNIX);
	for (size_t i = 0; i < prctls->n_cases; i++)
		for (uint32_t option = prctls->cases[i].first; option <= prctls->cases[i].last;
		     option++)
			EACH("prctl", do_prctl, (int)option, 0, (int)option, 1);
	EACH("arch_prctl", do_arch_prctl, 0x1003, 1, 0x1004, 1, 0x1011, 0, 0x1012, 0, 0x1012, 1,
	     0x1021, 1, 0x1022, 1, 0x1023, 0, 0x3001, 1, 0x4001, 1, 0x4002, 0, 0x5005, 1);
	EACH("file ioctl", do_file_ioctl, 0x541b, 0, 0x5421, 0, 0x5452, 0, 0x5401, 0, 0x80045200, 1,
	     0x5207, 1, (int)0x80086601, 2, 0x40086602, 2, (int)0xc020660b, 2, 0x5877, 2, 0xb701, 3,
	     0xb702, 3, 0xb703, 3, 0xb704, 3);
	for (int kind = 0; kind < 3; kind++) {
		add_range("fcntl", do_fcntl, 0, 16, kind);
		add_range("fcntl", do_fcntl, 36, 37, kind);
		add_range("fcntl", do_fcntl, 1024, 1038, kind);
	}
	add_range("madvise", do_madvise, 0, 25, 0);
	add_range("madvise of a file", do_madvise_file, 0, 25, 0);
	EACH("madvise", do_madvise, 102, 0);
	add_range("fadvise", do_fadvise, 0, 5, 0);
	EACH("seal", do_seal, F_SEAL_SHRINK, 0, F_SEAL_WRITE, 0, F_SEAL_FUTURE_WRITE, 0);
	for (int bit = 0; bit < 10; bit++)
		EACH("membarrier", do_membarrier, 1 << bit, 0);
	EACH("membarrier", do_membarrier, 0, 0, 16, 0, 8, 0, 64, 0, 32, 0, 256, 0, 128, 0);
	EACH("mapping", do_mapping, 2 * PAGE, 0, ROOM, 0, ROOM, MAP_POPULATE, ROOM, MAP_LOCKED);
	EACH("lock memory", do_lock_memory, 0, 0, MCL_CURRENT, 0, MCL_FUTURE, 0,
	     MCL_CURRENT | MCL_ONFAULT, 0);
	(void)add("pkey", do_pkey, 0, 0);
	EACH("affinity", do_affinity, 0, 0, 2, 0);
	EACH("scheduler", do_scheduler, SCHED_BATCH, 0, SCHED_IDLE, 0, SCHED_FIFO, 0);
	add_range("itimer", do_itimer, 0, 2, 0);
	add_range("timer", do_timer, 0, 11, 0);
	EACH("timerfd", do_timerfd, CLOCK_MONOTONIC, 0, CLOCK_REALTIME, 3, CLOCK_BOOTTIME, 0);
	(void)add("epoll", do_poll_files, 0, 0);
	(void)add("inotify", do_inotify, 0, 0);
	(void)add("files", do_files, 0, 0);
	(void)add("sync", do_sync, 0, 0);
	add_range("write to /proc", do_write_proc, 0, 8, 0);
	add_range("ipc", do_ipc, 0, 2, 0);
	(void)add("queue", do_queue, 0, 0);
	EACH("pair", do_pair, -1, 0, SOCK_STREAM, 0, SOCK_DGRAM, 0, SOCK_SEQPACKET, 0);
	(void)add("cycle", do_cycle, 0, 0);
	EACH("loopback", do_loopback, SOCK_STREAM, 0, SOCK_DGRAM, 0);
	EACH("netlink", do_netlink, RTM_GETLINK, 0, RTM_GETADDR, 0, RTM_GETROUTE, 0, RTM_GETNEIGH,
	     0, RTM_GETSTATS, 0, RTM_GETNETCONF, 0, RTM_GETNSID, 0);
	(void)add("thread", do_thread, 0, 0);
	EACH("process", do_process, 0, 0, 1, 0, 0, 1, 1, 1);
	(void)add("signal", do_signal, 0, 0);
	(void)add("pidfd", do_pidfd, 0, 0);
}
