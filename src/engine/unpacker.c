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
#include "spec/request.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
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

/* --- in that process: the archive --- */

/*
 * See archive-read.h. What libarchive is allowed to read is fixed: two formats, one filter. Sizes in headers are believed for
 * nothing: what counts is what was unpacked.
 */

enum { PIECE_BYTES = 64 << 10 };

/*
 * libarchive takes names for text of the thread's locale and turns them into that of others: in "C", any that is not ASCII
 * is damage to it. Times of a zip are local, and nothing of ours reads them.
 */
void archive_locale(void)
{
	locale_t ours = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	if (ours)
		(void)uselocale(ours);
	(void)setenv("TZ", "UTC0", 1);
	tzset();
}

int archive_refuse(struct error *err, int errnum, const char *name, const char *why)
{
	char shown[128];
	size_t n = 0;

	for (; name && name[n] && n < sizeof(shown) - 1; n++)
		shown[n] = name[n] < ' ' || name[n] == 127 ? '?' : name[n];
	shown[n] = '\0';
	(void)error_set(err, errnum == EFBIG ? ERROR_TOO_LARGE : ERROR_INPUT, errnum,
			"archive: %s%s%s%s", n ? "'" : "", shown, n ? "' " : "", why);
	if (err)
		(void)snprintf(err->field, sizeof(err->field), "archive");
	return -errnum;
}

static void archive_cleanup(struct archive **a)
{
	if (*a)
		(void)archive_read_free(*a);
}

static int open_archive(struct span packed, struct archive **ret, struct error *err)
{
	_cleanup_(archive_cleanup) struct archive *a = archive_read_new();

	if (!a)
		return error_oom(err);
	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_support_format_zip_seekable(a) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(a) != ARCHIVE_OK)
		return error_set(err, ERROR_INTERNAL, ENOTSUP,
				 "archives cannot be read on this host");
	if (archive_read_open_memory(a, packed.data, packed.len) != ARCHIVE_OK)
		return archive_refuse(err, EINVAL, NULL, "it is no tar, tar.gz or zip");
	/* The last of them is the memory itself. Packed more than once, a few bytes are as many as one likes. */
	if (archive_filter_count(a) > 2)
		return archive_refuse(err, EINVAL, NULL, "it is packed more than once");
	*ret = TAKE_PTR(a);
	return 0;
}

/* Everything but a regular file or a directory, and every name that is not plain. */
static int check_entry(struct archive_entry *entry, char *name, struct error *err)
{
	size_t len = strlen(name);
	mode_t type = archive_entry_filetype(entry);

	if (archive_entry_symlink(entry) || type == S_IFLNK)
		return archive_refuse(err, EINVAL, name, "is a symbolic link");
	if (archive_entry_hardlink(entry))
		return archive_refuse(err, EINVAL, name, "is a hard link");
	if (type != S_IFREG && type != S_IFDIR)
		return archive_refuse(err, EINVAL, name, "is no regular file");
	if (archive_entry_perm(entry) & (S_ISUID | S_ISGID))
		return archive_refuse(err, EINVAL, name, "has a setuid or setgid bit");
	if (archive_entry_is_encrypted(entry))
		return archive_refuse(err, EINVAL, name, "is encrypted");
	/* "dir/" is how directories are written, "./" how tar begins. */
	while (len > 1 && type == S_IFDIR && name[len - 1] == '/')
		name[--len] = '\0';
	return 0;
}

static int read_content(struct archive *a, const char *name, struct buf *ret, struct error *err)
{
	_cleanup_free_ char *piece = malloc(PIECE_BYTES);
	ssize_t n;

	if (!piece)
		return error_oom(err);
	while ((n = archive_read_data(a, piece, PIECE_BYTES)) > 0)
		if (buf_append(ret, piece, (size_t)n) < 0)
			return archive_refuse(err, EFBIG, name, "is too large when unpacked");
	return n < 0 ? archive_refuse(err, EINVAL, name, "is damaged") : 0;
}

/* Contents of a directory (GNU's dumps, forged zips) would be unpacked to pass over them, without any bound. */
static int check_directory(struct archive *a, const char *name, struct error *err)
{
	char byte;
	ssize_t n = archive_read_data(a, &byte, 1);

	return n == 0 ? 0
		      : archive_refuse(err, EINVAL, name,
				       n < 0 ? "is damaged" : "is a directory with contents");
}

struct archive_reading {
	struct archive *archive;
	const struct archive_sink *sink;
	size_t entries_left, bytes_left;
};

static int take_archive_file(struct archive_reading *r, struct archive_entry *entry,
			     const char *name, struct error *err)
{
	_cleanup_buf_ struct buf data = { 0 };
	struct archive_file file = { .name = name,
				     .executable = archive_entry_perm(entry) & S_IXUSR };
	int e;

	buf_init(&data, MIN(r->bytes_left, (size_t)ARCHIVE_FILE_MAX));
	e = read_content(r->archive, name, &data, err);
	if (e < 0)
		return e;
	r->bytes_left -= data.len;
	file.data = (struct span){ data.data ? data.data : "", data.len };
	return r->sink->take(r->sink->data, &file, err);
}

static int take_entry(struct archive_reading *r, struct archive_entry *entry, struct error *err)
{
	_cleanup_free_ char *copy = NULL;
	const char *raw = archive_entry_pathname_utf8(entry);
	char *name;
	int e;

	if (!raw)
		return archive_refuse(err, EINVAL, archive_entry_pathname(entry),
				      "has a name that is no UTF-8");
	copy = strdup(raw);
	if (!copy)
		return error_oom(err);
	e = check_entry(entry, copy, err);
	if (e < 0)
		return e;
	name = strncmp(copy, "./", 2) == 0 ? copy + 2 : copy;
	if (archive_entry_filetype(entry) == S_IFDIR && (!*name || strcmp(name, ".") == 0))
		return check_directory(r->archive, ".", err);
	if (request_check_path(name, strlen(name), NULL) < 0)
		return archive_refuse(err, EINVAL, name,
				      "is not a relative file name without . and ..");
	if (archive_entry_filetype(entry) == S_IFDIR)
		return check_directory(r->archive, name, err);
	return take_archive_file(r, entry, name, err);
}

int archive_read_all(struct span packed, const struct archive_sink *sink, struct error *err)
{
	_cleanup_(archive_cleanup) struct archive *a = NULL;
	struct archive_reading reading = { .sink = sink,
					   .entries_left = ARCHIVE_ENTRIES_MAX,
					   .bytes_left = ARCHIVE_TOTAL_MAX };
	struct archive_entry *entry;
	int r = open_archive(packed, &a, err), e;

	if (r < 0)
		return r;
	reading.archive = a;
	while ((e = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		if (reading.entries_left-- == 0)
			return archive_refuse(err, EFBIG, NULL, "it has more than 4096 entries");
		r = take_entry(&reading, entry, err);
		if (r < 0)
			return r;
	}
	if (e != ARCHIVE_EOF)
		return archive_refuse(err, EINVAL, NULL, "it is damaged, or no tar, tar.gz or zip");
	return reading.entries_left == ARCHIVE_ENTRIES_MAX
		       ? archive_refuse(err, EINVAL, NULL, "it is empty")
		       : 0;
}
