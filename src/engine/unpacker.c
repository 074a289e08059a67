/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See unpacker.h. An archive's process that is killed (a forbidden call, too much time or memory, a bug of a library) closes its socket
 * without an END, which is all that the front needs to know.
 */
#include "engine/unpacker.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/confine/confine.h"
#include "engine/archive-read.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	CPU_S = 10,
	/* The packed bytes, one file twice while its buffer grows, and what the front had when it forked. */
	MEMORY_BYTES = 256 << 20,
	EXIT_NOT_CONFINED = 1,
};

const struct unpacker_options unpacker_defaults = { unpacker_serve, CPU_S };

static int read_all(int fd, void *data, size_t n)
{
	for (char *at = data; n > 0;) {
		ssize_t got = read(fd, at, n);

		if (got <= 0)
			return -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static int tell_front(int fd, const struct unpack_record *record, const char *name,
		      const char *data)
{
	int r = sys_write(fd, record, sizeof(*record));

	if (r == 0)
		r = sys_write(fd, name, record->name_len);
	return r < 0 ? r : sys_write(fd, data, record->size);
}

static int tell_file(void *data, const struct archive_file *file, struct error *err)
{
	const struct unpack_record record = { .kind = UNPACK_FILE,
					      .name_len = (uint32_t)strlen(file->name),
					      .executable = file->executable,
					      .size = file->data.len };

	(void)err;
	return tell_front(*(const int *)data, &record, file->name, file->data.data);
}

void unpacker_serve(int fd)
{
	_cleanup_free_ char *packed = NULL;
	const struct archive_sink sink = { tell_file, &fd };
	struct unpack_record end = { .kind = UNPACK_END };
	struct error err = { 0 };
	uint64_t n;
	int r;

	if (read_all(fd, &n, sizeof(n)) < 0 || n > ARCHIVE_PACKED_MAX)
		return;
	packed = malloc(n + 1);
	if (!packed || read_all(fd, packed, n) < 0)
		return;
	r = archive_read_all((struct span){ packed, n }, &sink, &err);
	if (r < 0)
		end = (struct unpack_record){ .kind = UNPACK_REFUSED,
					      .name_len = (uint32_t)strlen(err.text),
					      .errnum = (uint32_t)-r };
	(void)!tell_front(fd, &end, err.text, NULL);
}

/* A kernel without Landlock or filters has its daemon say so (layer front); archives are unpacked all the same. */
static int lacking(int r)
{
	return r == -ENOSYS || r == -EINVAL || r == -EOPNOTSUPP ? 0 : r;
}

static _noreturn_ void archive_main(const struct unpacker_options *o, int fd)
{
	int r = sys_setrlimit(RLIMIT_CPU, o->cpu_s);

	if (r == 0)
		r = sys_setrlimit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = confine_memory(MEMORY_BYTES);
	if (r == 0)
		r = lacking(confine_enter(CONFINE_ARCHIVE));
	if (r < 0)
		_exit(EXIT_NOT_CONFINED);
	o->serve(fd);
	_exit(0);
}

/* The front's settings may stand there. */
static void forget_environment(void)
{
	for (char **v = environ; v && *v; v++)
		explicit_bzero(*v, strlen(*v));
	(void)clearenv();
}

static _noreturn_ void unpacker_main(const struct unpacker_options *o, int sock, pid_t parent)
{
	int fd, r = sys_close_others(&sock, 1);
	size_t n_fds = 1;
	char byte;

	forget_environment();
	sys_default_signals();
	/* No process waits for its children. */
	(void)signal(SIGCHLD, SIG_IGN);
	archive_locale();
	if (r == 0)
		r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	if (r == 0)
		r = lacking(confine_files(NULL));
	if (r == 0)
		r = lacking(confine_enter(CONFINE_UNPACKER));
	if (r < 0 || getppid() != parent)
		_exit(EXIT_NOT_CONFINED);
	while (sys_recv_record(sock, &byte, sizeof(byte), &fd, &n_fds) > 0) {
		if (n_fds == 1) {
			if (fork() == 0) {
				(void)close(sock);
				archive_main(o, fd);
			}
			(void)close(fd);
		}
		n_fds = 1;
	}
	_exit(0);
}

int unpacker_start(const struct unpacker_options *options)
{
	pid_t pid, parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		unpacker_main(options, pair[1], parent);
	(void)fd_close(pair[1]);
	if (pid < 0) {
		int r = -errno;

		(void)fd_close(pair[0]);
		return r;
	}
	return pair[0];
}

int unpacker_connect(int unpacker_fd)
{
	_cleanup_close_ int ours = -EBADF, theirs = -EBADF;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	r = sys_send_record(unpacker_fd, "", 1, &theirs, 1);
	return r < 0 ? r : TAKE_FD(ours);
}
