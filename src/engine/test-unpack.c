/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of friends and enemies (F19): what is plain is unpacked, anything else refuses the whole. */
#include "engine/unpack.h"

#include "base/fd.h"
#include "engine/archive-read.h"
#include "engine/unpacker.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 8 << 20 };

struct member {
	const char *path, *text;
	mode_t mode;
	const char *symlink, *hardlink;
	size_t zeros; /* instead of text */
};

enum archive_kind { TAR, TAR_GZ, ZIP, _KINDS };

static char *room;
static struct span packed;
static int unpacker_fd;

static struct archive *begin(enum archive_kind kind, size_t *used)
{
	struct archive *a = archive_write_new();

	assert_int_equal(kind == ZIP ? archive_write_set_format_zip(a)
				     : archive_write_set_format_pax_restricted(a),
			 ARCHIVE_OK);
	if (kind == TAR_GZ)
		assert_int_equal(archive_write_add_filter_gzip(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(a, room, ROOM, used), ARCHIVE_OK);
	return a;
}

static void add(struct archive *a, const struct member *m)
{
	struct archive_entry *entry = archive_entry_new();
	size_t size = m->zeros ? m->zeros : m->text ? strlen(m->text) : 0;
	static const char zeros[1 << 16];

	archive_entry_set_pathname(entry, m->path);
	archive_entry_set_mode(entry, m->mode ? m->mode : S_IFREG | 0644);
	archive_entry_set_size(entry, (la_int64_t)size);
	if (m->symlink)
		archive_entry_set_symlink(entry, m->symlink);
	if (m->hardlink)
		archive_entry_set_hardlink(entry, m->hardlink);
	assert_true(archive_write_header(a, entry) >= ARCHIVE_WARN);
	if (m->text && size)
		assert_int_equal(archive_write_data(a, m->text, size), size);
	for (size_t left = m->zeros; left > 0;)
		left -= (size_t)archive_write_data(a, zeros, MIN(left, sizeof(zeros)));
	archive_entry_free(entry);
}

static void pack(enum archive_kind kind, const struct member *members, size_t n)
{
	size_t used = 0;
	struct archive *a = begin(kind, &used);

	for (size_t i = 0; i < n; i++)
		add(a, &members[i]);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	(void)archive_write_free(a);
	packed = (struct span){ room, used };
}

static void test_plain_ones(void **state)
{
	static const struct member members[] = {
		{ .path = "./", .mode = S_IFDIR | 0755 },
		{ .path = "lib/", .mode = S_IFDIR | 0755 },
		{ .path = "main.py", .text = "import lib.a\n" },
		{ .path = "lib/a.py", .text = "print('\xc3\xa4')\n" },
		{ .path = "tool", .text = "#!/bin/sh\n", .mode = S_IFREG | 0755 },
		{ .path = "raw", .text = "\xff\xfe\xfd\xfc" },
		{ .path = "empty", .text = "" },
	};

	(void)state;
	for (enum archive_kind kind = TAR; kind < _KINDS; kind++) {
		json_t *files = json_object(), *tool;
		struct error err = { 0 };

		/* Zip and gzip have no "./" of their own use, but take it. */
		pack(kind, members, ARRAY_SIZE(members));
		assert_int_equal(unpack_archive(unpacker_fd, packed, files, &err), 0);
		assert_int_equal(json_object_size(files), 5);
		assert_string_equal(json_string_value(json_object_get(files, "lib/a.py")),
				    "print('\xc3\xa4')\n");
		tool = json_object_get(files, "tool");
		assert_string_equal(json_string_value(json_object_get(tool, "mode")), "0755");
		assert_string_equal(
			json_string_value(json_object_get(json_object_get(files, "raw"), "base64")),
			"//79/A==");
		assert_string_equal(json_string_value(json_object_get(files, "empty")), "");
		json_decref(files);
	}
}

static void refused(const char *why, int errnum)
{
	json_t *files = json_object();
	struct error err = { 0 };

	assert_int_equal(unpack_archive(unpacker_fd, packed, files, &err), -errnum);
	assert_int_equal(err.code, errnum == EFBIG ? ERROR_TOO_LARGE : ERROR_INPUT);
	assert_string_equal(err.field, "archive");
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
	json_decref(files);
}

static void test_enemies(void **state)
{
	static const struct {
		struct member member;
		const char *why;
	} cases[] = {
		{ { .path = "../x", .text = "1" }, "'../x' is not a relative" },
		{ { .path = "a/../../x", .text = "1" }, "is not a relative" },
		{ { .path = "/etc/passwd", .text = "1" }, "is not a relative" },
		{ { .path = "a//b", .text = "1" }, "is not a relative" },
		{ { .path = "../d/", .mode = S_IFDIR | 0755 }, "is not a relative" },
		{ { .path = "l", .mode = S_IFLNK | 0777, .symlink = "/etc" }, "symbolic link" },
		{ { .path = "h", .hardlink = "good" }, "hard link" },
		{ { .path = "dev", .mode = S_IFCHR | 0666 }, "no regular file" },
		{ { .path = "pipe", .mode = S_IFIFO | 0666 }, "no regular file" },
		{ { .path = "suid", .text = "1", .mode = S_IFREG | 04755 }, "setuid" },
		{ { .path = "good", .text = "1" }, "is there twice" },
	};
	static const struct member good = { .path = "good", .text = "first" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pack(TAR, (const struct member[]){ good, cases[i].member }, 2);
		refused(cases[i].why, EINVAL);
	}
	/* Symbolic link first, then through it. */
	pack(TAR,
	     (const struct member[]){ { .path = "l", .mode = S_IFLNK | 0777, .symlink = "/tmp" },
				      { .path = "l/x", .text = "1" } },
	     2);
	refused("symbolic link", EINVAL);
	pack(ZIP, (const struct member[]){ { .path = "../x", .text = "1" } }, 1);
	refused("is not a relative", EINVAL);
}

/* As tar, zip and git write names that are not ASCII; what is no UTF-8 has no name here. */
static void test_names(void **state)
{
	static const struct member members[] = {
		{ .path = "d\xc3\xafr/", .mode = S_IFDIR | 0755 },
		{ .path = "d\xc3\xafr/\xe6\xbc\xa2.txt", .text = "kanji" },
		{ .path = "./\xf0\x9f\x90\x99.py", .text = "print(8)" },
	};
	static const struct member latin = { .path = "d\xefr.txt", .text = "x" };
	json_t *files;
	struct error err = { 0 };

	(void)state;
	for (enum archive_kind kind = TAR; kind < _KINDS; kind++) {
		files = json_object();
		pack(kind, members, ARRAY_SIZE(members));
		if (unpack_archive(unpacker_fd, packed, files, &err) < 0)
			fail_msg("%d: %s", kind, err.text);
		assert_int_equal(json_object_size(files), 2);
		assert_string_equal(
			json_string_value(json_object_get(files, "d\xc3\xafr/\xe6\xbc\xa2.txt")),
			"kanji");
		assert_non_null(json_object_get(files, "\xf0\x9f\x90\x99.py"));
		json_decref(files);
	}
	files = json_object();
	pack(TAR, &latin, 1);
	assert_int_equal(unpack_archive(unpacker_fd, packed, files, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is no UTF-8"));
	json_decref(files);
}

/* Some KiB that would be many MiB, in one file and in many, and too many names. */
static void test_bombs(void **state)
{
	static struct member many[5];
	size_t used = 0;
	struct archive *a;
	char name[16];

	(void)state;
	for (enum archive_kind kind = TAR_GZ; kind < _KINDS; kind++) {
		pack(kind, &(struct member){ .path = "bomb", .zeros = 80 << 20 }, 1);
		assert_true(packed.len < 1 << 20);
		refused("too large", EFBIG);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		static const char *const names[] = { "a", "b", "c", "d", "e" };

		many[i] = (struct member){ .path = names[i], .zeros = 15 << 20 };
	}
	pack(TAR_GZ, many, ARRAY_SIZE(many));
	refused("too large", EFBIG);
	a = begin(TAR_GZ, &used);
	for (int i = 0; i <= ARCHIVE_ENTRIES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		add(a, &(struct member){ .path = name, .text = "x" });
	}
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	(void)archive_write_free(a);
	packed = (struct span){ room, used };
	refused("more than 4096", EFBIG);
}

static void test_damage(void **state)
{
	static const struct member one = { .path = "a", .text = "some text that is long enough" };

	(void)state;
	packed = (struct span){ "hello, I am no archive", 22 };
	refused("no tar, tar.gz or zip", EINVAL);
	for (enum archive_kind kind = TAR; kind < _KINDS; kind++) {
		pack(kind, &one, 1);
		packed.len = kind == TAR ? 520 : packed.len / 2;
		refused("", EINVAL);
	}
	/* A zip that lies about a size: the central directory and the data disagree. */
	pack(ZIP, &one, 1);
	for (size_t i = 0; i + 4 < packed.len; i++)
		if (memcmp(room + i, "PK\1\2", 4) == 0)
			room[i + 24] = 1;
	{
		json_t *files = json_object();
		struct error err = { 0 };

		if (unpack_archive(unpacker_fd, packed, files, &err) == 0)
			assert_true(json_string_length(json_object_get(files, "a")) <=
				    strlen(one.text));
		json_decref(files);
	}
}

static void test_base64(void **state)
{
	json_t *files = json_object(), *bad = json_string("???"), *number = json_integer(5);
	struct error err = { 0 };

	(void)state;
	assert_int_equal(unpack_base64(unpacker_fd, bad, files, &err), -EINVAL);
	assert_non_null(strstr(err.text, "base64"));
	assert_int_equal(unpack_base64(unpacker_fd, number, files, &err), -EINVAL);
	json_decref(files);
	json_decref(bad);
	json_decref(number);
}

/* Archives' processes that a library's bug has given to an attacker. What they are told, they have read. */
static void hear(int fd)
{
	char bytes[4096];

	(void)!read(fd, bytes, sizeof(bytes));
}

static void say_file(int fd, const char *name, uint64_t size)
{
	const struct unpack_record record = { .kind = UNPACK_FILE,
					      .name_len = (uint32_t)strlen(name),
					      .size = size };
	const struct unpack_record end = { .kind = UNPACK_END };

	hear(fd);
	(void)!write(fd, &record, sizeof(record));
	(void)!write(fd, name, strlen(name));
	(void)!write(fd, "12345678", MIN(size, (uint64_t)8));
	(void)!write(fd, &end, sizeof(end));
}

static void evil_crash(int fd)
{
	hear(fd);
	raise(SIGSEGV);
}

static void evil_end(int fd)
{
	hear(fd);
}

static void evil_loop(int fd)
{
	hear(fd);
	for (volatile int i = 0;; i = i + 1)
		continue;
}

static void evil_hunger(int fd)
{
	hear(fd);
	for (size_t n = 1 << 20; n < SIZE_MAX / 2; n *= 2) {
		char *block = malloc(n);

		if (!block)
			abort();
		memset(block, 1, MIN(n, (size_t)1 << 30));
	}
}

static void evil_name(int fd)
{
	say_file(fd, "../x", 8);
}

static void evil_absolute(int fd)
{
	say_file(fd, "/etc/cron.d/x", 8);
}

static void evil_size(int fd)
{
	say_file(fd, "x", UINT64_MAX);
}

static void evil_words(int fd)
{
	const struct unpack_record record = { .kind = UNPACK_REFUSED, .name_len = UINT32_MAX };

	hear(fd);
	(void)!write(fd, &record, sizeof(record));
}

static void evil_kind(int fd)
{
	const struct unpack_record record = { .kind = 77 };

	hear(fd);
	(void)!write(fd, &record, sizeof(record));
}

/* Each of these would be said as a file of that name, had it worked. */
static void evil_socket(int fd)
{
	if (socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0)
		say_file(fd, "socket", 8);
}

static void evil_exec(int fd)
{
	static char shell[] = "/bin/true";
	char *argv[] = { shell, NULL };

	(void)execv(shell, argv);
	say_file(fd, "exec", 8);
}

static void evil_fork(int fd)
{
	if (fork() >= 0)
		say_file(fd, "fork", 8);
}

static void evil_kill(int fd)
{
	if (kill(getppid(), 0) == 0)
		say_file(fd, "kill", 8);
}

static void evil_open(int fd)
{
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		say_file(fd, "open", 8);
}

static void test_evil_processes(void **state)
{
	static const struct {
		const char *what;
		void (*serve)(int fd);
	} cases[] = {
		{ "crash", evil_crash },   { "end", evil_end },	    { "loop", evil_loop },
		{ "hunger", evil_hunger }, { "name", evil_name },   { "absolute", evil_absolute },
		{ "size", evil_size },	   { "words", evil_words }, { "kind", evil_kind },
		{ "socket", evil_socket }, { "exec", evil_exec },   { "fork", evil_fork },
		{ "kill", evil_kill },	   { "open", evil_open },
	};

	(void)state;
	packed = (struct span){ "any", 3 };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct unpacker_options options = { cases[i].serve, 1 };
		json_t *files = json_object();
		struct error err = { 0 };
		int fd = unpacker_start(&options);
		int r = unpack_archive(fd, packed, files, &err);

		if (r != -EINVAL || err.code != ERROR_INPUT ||
		    !strstr(err.text, "it cannot be unpacked"))
			fail_msg("%s: %d %s", cases[i].what, r, err.text);
		assert_int_equal(json_object_size(files), 0);
		json_decref(files);
		assert_true(fd_close(fd) < 0);
	}
}

/* One that broke does not concern the next, and an unpacker that is gone is said so. */
static void test_next_one(void **state)
{
	static const struct member one = { .path = "a", .text = "some text" };
	json_t *files = json_object();
	struct error err = { 0 };
	int pair[2];

	(void)state;
	packed = (struct span){ "no archive", 10 };
	refused("no tar", EINVAL);
	pack(ZIP, &one, 1);
	assert_int_equal(unpack_archive(unpacker_fd, packed, files, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	(void)fd_close(pair[1]);
	assert_true(unpack_archive(pair[0], packed, files, &err) < 0);
	assert_int_equal(err.code, ERROR_INTERNAL);
	(void)fd_close(pair[0]);
	json_decref(files);
}

static int setup(void **state)
{
	(void)state;
	room = malloc(ROOM);
	unpacker_fd = unpacker_start(&unpacker_defaults);
	return room && unpacker_fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(room);
	unpacker_fd = fd_close(unpacker_fd);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_ones),     cmocka_unit_test(test_enemies),
		cmocka_unit_test(test_bombs),	       cmocka_unit_test(test_damage),
		cmocka_unit_test(test_names),	       cmocka_unit_test(test_base64),
		cmocka_unit_test(test_evil_processes), cmocka_unit_test(test_next_one),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
