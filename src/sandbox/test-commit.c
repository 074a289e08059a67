/* SPDX-License-Identifier: Apache-2.0 */
/* What a commit does with each kind of entry, what it lists, and what it refuses. The upper layer is made by hand here. */
#include "sandbox/test-commit-tree.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

static char root[128];
static struct workspace_place places[2];
static struct commit_outcome out;
static char changes[TREE_TEXT];
static int64_t mounted_ns;

/* Past the tick that inodes take their times from. */
static void let_time_pass(void)
{
	(void)usleep(20000);
}

static int setup(void **state _unused_)
{
	(void)snprintf(top, sizeof(top), "/tmp/atoll-commit-XXXXXX");
	if (!mkdtemp(top) || mkdir(in(".", "root"), 0700) < 0)
		return -1;
	(void)snprintf(root, sizeof(root), "%s/root", top);
	places[0] = (struct workspace_place){ NULL, root };
	if (mkdir(in("root", "w"), 0755) < 0 || mkdir(in(".", "upper"), 0755) < 0)
		return -1;
	write_file(in("upper", "probe"), "", 0600);
	user_xattr = setxattr(in("upper", "probe"), "user.overlay.x", "y", 1, 0) == 0;
	(void)unlink(in("upper", "probe"));
	mounted_ns = INT64_MAX; /* nothing is newer, unless the test says so */
	return 0;
}

static int teardown(void **state _unused_)
{
	tree_remove(top);
	return 0;
}

static const char *const kinds[] = { "+", "*", "-", "?" };
static const char *const skips[] = { "", "special", "link", "deep", "own", "mount" };

/* The records in words, sorted: + added, * changed, - removed, ? skipped and why, ! a conflict. */
static void say_changes(int fd)
{
	static _Alignas(8) char bytes[1 << 20];
	static char words[64][CHANGE_PATH_MAX + 16];
	char *sorted[64];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	size_t at = 0, length, count = 0, used = 0;
	const struct change *c;

	assert_true(n >= 0);
	while ((c = change_at(bytes + at, (size_t)n - at, &length)) && count < ARRAY_SIZE(words)) {
		(void)snprintf(words[count], sizeof(words[0]), "%s%s%s%s", c->path, kinds[c->kind],
			       skips[c->skip], c->conflict ? "!" : "");
		if (c->type == CHANGE_FILE && c->kind <= CHANGE_CHANGED)
			assert_int_equal(strlen(c->sha256), 64);
		sorted[count] = words[count];
		count++;
		at += length;
	}
	qsort(sorted, count, sizeof(*sorted), by_name);
	changes[0] = '\0';
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(changes + used, sizeof(changes) - used, "%s ", sorted[i]);
}

static struct commit commit_make(void)
{
	struct error err = { 0 };
	struct commit c = {
		.upper_fd = open(in("upper", "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.workspace_fd = open(in("root", "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.list_fd = memfd_create("list", MFD_CLOEXEC),
		.user_xattr = user_xattr,
		.owner_uid = geteuid() ? geteuid() : 1234,
		.owner_gid = geteuid() ? getegid() : 1234,
		.mounted_ns = mounted_ns,
		.list_bytes_max = 1 << 20,
	};

	c.store_fd = commit_store_open(places, "w", c.workspace_fd, &err);
	assert_true(c.upper_fd >= 0 && c.workspace_fd >= 0 && c.list_fd >= 0 && c.store_fd >= 0);
	return c;
}

static void commit_close(const struct commit *c)
{
	(void)close(c->upper_fd);
	(void)close(c->workspace_fd);
	(void)close(c->list_fd);
	(void)close(c->store_fd);
}

static int commit_with(struct commit *c)
{
	int r = commit_apply(c, &out);

	say_changes(c->list_fd);
	commit_tidy(c);
	commit_close(c);
	return r;
}

static int commit_now(void)
{
	struct commit c = commit_make();

	return commit_with(&c);
}

static void check_store_empty(void)
{
	const char *text = tree_read(in("root", ".atoll-commit/w"));

	assert_string_equal(strncmp(text, "stage/@700 trash/@700 ", 22) == 0 ? "" : text, "");
	assert_null(strstr(text, "journal"));
}

/* The workspace, the upper layer; then the workspace after it, and the list. */
static void check(const char *before, const char *upper, const char *after, const char *list)
{
	tree_make("root/w", before);
	tree_make("upper", upper);
	assert_int_equal(commit_now(), 0);
	assert_int_equal(out.state, COMMIT_DONE);
	assert_string_equal(tree_read(in("root", "w")), after);
	assert_string_equal(changes, list);
	check_store_empty();
}

static void test_nothing(void **state _unused_)
{
	check("a=1", "", "a=1 ", "");
}

static void test_files(void **state _unused_)
{
	struct stat st;

	check("old=1 same=2 size=33 d/ d/x=1",
	      "new=n old=2 same=2 size=4444 d/ d/y=@600 d/x=2@4755",
	      "d/ d/x=2@755 d/y=@600 new=n old=2 same=2 size=4444 ", "d/x* d/y+ new+ old* size* ");
	assert_int_equal(out.added, 2);
	assert_int_equal(out.changed, 3);
	assert_int_equal(stat(in("root/w", "new"), &st), 0);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : 1234);
	assert_int_equal(st.st_mtime, 1000000000);
}

static void test_copied_up(void **state _unused_)
{
	struct stat before, after;

	tree_make("root/w", "a=same x=run@644 t=touched d/ d/b=deep");
	assert_int_equal(stat(in("root/w", "a"), &before), 0);
	tree_make("upper", "a=same x=run@755 t=touched d/ d/b=deep");
	tree_set_time(in("upper", "t"), 1500000000);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(changes, "x* ");
	assert_int_equal(stat(in("root/w", "a"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(stat(in("root/w", "x"), &after), 0);
	assert_int_equal(after.st_mode & 0777, 0755);
	assert_int_equal(stat(in("root/w", "t"), &after), 0);
	assert_int_equal(after.st_mtime, 1500000000);
}

static void test_directories(void **state _unused_)
{
	check("d/ d/old=1", "n/ n/m/ n/m/f=1 n/e/ d/ d/s/ d/s/f=2",
	      "d/ d/old=1 d/s/ d/s/f=2 n/ n/e/ n/m/ n/m/f=1 ", "d/s+ d/s/f+ n+ n/e+ n/m+ n/m/f+ ");
}

static void test_directory_mode(void **state _unused_)
{
	tree_make("root/w", "d/ d/f=1 e/");
	tree_make("upper", "d/ d/g=2 e/ n/ n/f=1");
	assert_int_equal(chmod(in("upper", "d"), 0500), 0);
	assert_int_equal(chmod(in("upper", "n"), 0500), 0);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "d/@500 d/f=1 d/g=2 e/ n/@500 n/f=1 ");
	assert_string_equal(changes, "d* d/g+ n+ n/f+ ");
	/* And into one that is closed, which is closed again afterwards. */
	assert_int_equal(chmod(in("upper", "d"), 0700), 0);
	tree_make("upper", "d/h=3");
	assert_int_equal(chmod(in("upper", "d"), 0500), 0);
	assert_int_equal(chmod(in("upper", "n"), 0500), 0);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")),
			    "d/@500 d/f=1 d/g=2 d/h=3 e/ n/@500 n/f=1 ");
}

static void test_removals(void **state _unused_)
{
	check("a=1 b=2 d/ d/x=1 d/s/ d/s/y=2 k/ k/z=1 k/l=2 never=1", "a- d- gone- k/ k/z-",
	      "b=2 k/ k/l=2 never=1 ", "a- d- d/s- d/s/y- d/x- k/z- ");
}

static void test_opaque(void **state _unused_)
{
	check("d/ d/x=1 d/s/ d/s/y=2 d/keep=k", "d/! d/keep=new d/n=1", "d/ d/keep=new d/n=1 ",
	      "d/keep* d/n+ d/s- d/s/y- d/x- ");
}

/* A program can set the attribute of the other kind: it means nothing. */
static void test_foreign_opaque(void **state _unused_)
{
	tree_make("root/w", "d/ d/x=1");
	tree_make("upper", "d/! d/n=1");
	user_xattr = !user_xattr;
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "d/ d/n=1 d/x=1 ");
}

static void test_opaque_spares_the_new(void **state _unused_)
{
	tree_make("root/w", "d/ d/old=1");
	let_time_pass();
	mounted_ns = clock_realtime_ns();
	let_time_pass();
	tree_make("root/w", "d/theirs=2 d/theirdir/");
	tree_make("upper", "d/! d/ours=3");
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "d/ d/ours=3 d/theirdir/ d/theirs=2 ");
	assert_string_equal(changes, "d/old- d/ours+ ");
}

static void test_type_changes(void **state _unused_)
{
	check("f=1 d/ d/x=1 d/s/ l>f e/", "f/ f/in=1 d=now l/ e>d", "d=now e>d f/ f/in=1 l/ ",
	      "d* d/s- d/x- e* f* f/in+ l* ");
}

static void test_links(void **state _unused_)
{
	check("d/ d/f=1 same>d/f",
	      "a>d/f abs>/etc/passwd up>../x d/ d/up>../a d/out>../../x s/ s/t>x/../../.. "
	      "same>d/f dot>./d//f self>. c>d/..",
	      "a>d/f d/ d/f=1 d/up>../a dot>./d//f s/ same>d/f self>. ",
	      "a+ abs?link c?link d/out?link d/up+ dot+ s+ s/t?link self+ up?link ");
	assert_int_equal(out.skipped, 5);
}

static void test_special(void **state _unused_)
{
	tree_make("root/w", "f=stays");
	tree_make("upper", "p| f| n/ n/q| .atoll=1");
	assert_int_equal(mkdir(in("upper", ".atoll-commit"), 0755), 0);
	write_file(in("upper", ".atoll-commit/journal"), "forged", 0644);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), ".atoll=1 f=stays n/ ");
	assert_string_equal(changes,
			    ".atoll+ .atoll-commit?own f?special n+ n/q?special p?special ");
}

static void test_hard_links(void **state _unused_)
{
	struct stat a, b, c;

	tree_make("root/w", "a=1");
	tree_make("upper", "a=1 d/");
	assert_int_equal(link(in("upper", "a"), in("upper", "b")), 0);
	assert_int_equal(link(in("upper", "a"), in("upper", "d/c")), 0);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(changes, "b+ d+ d/c+ ");
	assert_int_equal(stat(in("root/w", "a"), &a), 0);
	assert_int_equal(stat(in("root/w", "b"), &b), 0);
	assert_int_equal(stat(in("root/w", "d/c"), &c), 0);
	assert_true(a.st_ino == b.st_ino && b.st_ino == c.st_ino && a.st_nlink == 3);
}

static void test_sparse(void **state _unused_)
{
	char got[8] = "";
	struct stat st;
	int fd = open(in("upper", "s"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(pwrite(fd, "middle", 6, 8 << 20), 6);
	assert_int_equal(ftruncate(fd, 32 << 20), 0);
	(void)close(fd);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(changes, "s+ ");
	fd = open(in("root/w", "s"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 32 << 20);
	assert_true(st.st_blocks * 512 < 1 << 20);
	assert_int_equal(pread(fd, got, 6, 8 << 20), 6);
	assert_string_equal(got, "middle");
	(void)close(fd);
}

static void test_closed(void **state _unused_)
{
	tree_make("upper", "f=secret@0 d/ d/g=1@0");
	assert_int_equal(chmod(in("upper", "d"), 0), 0);
	assert_int_equal(commit_now(), 0);
	assert_string_equal(changes, "d+ d/g+ f+ ");
	assert_int_equal(chmod(in("root/w", "d"), 0700), 0);
	assert_int_equal(chmod(in("root/w", "f"), 0600), 0);
	assert_int_equal(chmod(in("root/w", "d/g"), 0600), 0);
	assert_string_equal(tree_read(in("root", "w")), "d/@700 d/g=1@600 f=secret@600 ");
}

static void test_conflicts(void **state _unused_)
{
	tree_make("root/w", "a=1 b=1 c=1 d/ d/x=1");
	let_time_pass();
	mounted_ns = clock_realtime_ns();
	let_time_pass();
	tree_make("root/w", "a=theirs d/y=theirs");
	tree_make("upper", "a=ours b=ours c- d-");
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "a=ours b=ours ");
	assert_string_equal(changes, "a*! b* c- d-! d/x- d/y-! ");
	assert_int_equal(out.conflicts, 3);
}

static void test_list(void **state _unused_)
{
	struct commit c = commit_make();

	tree_make("root/w", "a=1 d/ d/x=1");
	tree_make("upper", "a=2 d- n/ n/f=1 up>../x");
	c.mode = COMMIT_LIST;
	(void)close(c.store_fd);
	c.store_fd = -EBADF;
	assert_int_equal(commit_with(&c), 0);
	assert_string_equal(tree_read(in("root", "w")), "a=1 d/ d/x=1 ");
	assert_string_equal(changes, "a* d- d/x- n+ n/f+ up?link ");
}

static void test_list_bound(void **state _unused_)
{
	struct commit c = commit_make();

	tree_make("upper", "a=1 b=2 c=3");
	c.list_bytes_max = 200;
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.added, 3);
	assert_int_equal(out.unlisted, 1);
	assert_string_equal(tree_read(in("root", "w")), "a=1 b=2 c=3 ");
}

static void make_deep(const char *dir, int levels)
{
	int fd = open(in(dir, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(fd);
		fd = next;
		assert_true(fd >= 0);
	}
	(void)close(fd);
}

static void test_deep(void **state _unused_)
{
	make_deep("upper", COMMIT_DEPTH_MAX + 40);
	tree_make("upper", "f=1");
	assert_int_equal(commit_now(), 0);
	assert_int_equal(out.skipped, 1);
	assert_int_equal(out.added, COMMIT_DEPTH_MAX);
	/* One that the host made deeper goes as a whole. */
	tree_remove(in("upper", "d"));
	tree_remove(in("root/w", "d"));
	make_deep("root/w", 3 * COMMIT_DEPTH_MAX);
	tree_make("upper", "d-");
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "f=1 ");
	check_store_empty();
}

static void test_quota(void **state _unused_)
{
	struct commit c = commit_make();

	tree_make("root/w", "a=1 b=2");
	tree_make("upper", "c=3 d=4");
	c.quota_inodes = 3;
	assert_true(commit_with(&c) < 0);
	assert_int_equal(out.state, COMMIT_QUOTA);
	assert_int_equal(out.inodes_before, 2);
	assert_int_equal(out.inodes_after, 4);
	assert_string_equal(changes, "c+ d+ ");
	assert_string_equal(tree_read(in("root", "w")), "a=1 b=2 ");
	check_store_empty();
	c = commit_make();
	c.quota_inodes = 4;
	assert_int_equal(commit_with(&c), 0);
	assert_string_equal(tree_read(in("root", "w")), "a=1 b=2 c=3 d=4 ");
	/* Full: replacing and removing are fine, and so is what a removal makes room for. */
	tree_make("upper", "a- c=9 e=5");
	assert_int_equal(unlink(in("upper", "d")), 0);
	c = commit_make();
	c.quota_inodes = 2;
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.inodes_after, 4);
	assert_string_equal(tree_read(in("root", "w")), "b=2 c=9 d=4 e=5 ");
	/* The host made room: the noted size is not believed when it would refuse. */
	assert_int_equal(unlink(in("root/w", "b")) + unlink(in("root/w", "d")), 0);
	tree_make("upper", "f=1");
	c = commit_make();
	c.quota_inodes = 3;
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.inodes_after, 3);
}

static void test_quota_bytes(void **state _unused_)
{
	static char text[2000000];
	struct commit c = commit_make();

	memset(text, 'x', sizeof(text) - 1);
	c.quota_bytes = 3 << 20;
	write_file(in("upper", "a"), text, 0644);
	write_file(in("upper", "b"), text, 0644);
	assert_true(commit_with(&c) < 0);
	assert_int_equal(out.state, COMMIT_QUOTA);
	assert_true(out.bytes_after >= 3999998);
	c = commit_make();
	c.quota_bytes = 5 << 20;
	assert_int_equal(commit_with(&c), 0);
	assert_true(out.bytes_after >= 3999998 && out.bytes_after < 5 << 20);
}

/* Two at once: the lock lets one after the other, both are applied, the later one wins. */
static void test_two_at_once(void **state _unused_)
{
	enum { RUNS = 8 };
	pid_t pids[RUNS];

	for (int i = 0; i < RUNS; i++) {
		char dir[32];

		(void)snprintf(dir, sizeof(dir), "upper%d", i);
		assert_int_equal(mkdir(in(".", dir), 0755), 0);
		(void)snprintf(dir, sizeof(dir), "upper%d/own%d", i, i);
		write_file(in(".", dir), "mine", 0644);
		(void)snprintf(dir, sizeof(dir), "upper%d/shared", i);
		write_file(in(".", dir), "text", 0644);
	}
	for (int i = 0; i < RUNS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct commit c = commit_make();
			char dir[32];

			(void)snprintf(dir, sizeof(dir), "upper%d", i);
			(void)close(c.upper_fd);
			c.upper_fd = open(in(dir, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			_exit(commit_with(&c) < 0);
		}
	}
	for (int i = 0; i < RUNS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(tree_read(in("root", "w")),
			    "own0=mine own1=mine own2=mine own3=mine own4=mine own5=mine own6=mine "
			    "own7=mine shared=text ");
	check_store_empty();
}

/* A disk that is full: all is as it was, and nothing is left behind. */
static void full_disk(void)
{
	struct statvfs before, after;
	struct commit c;
	int fd;

	char options[96];

	(void)snprintf(options, sizeof(options), "size=1m,mode=0700,uid=%d,gid=%d", (int)geteuid(),
		       (int)getegid());
	assert_int_equal(mount("t", in("root", "."), "tmpfs", 0, options), 0);
	assert_int_equal(mkdir(in("root", "w"), 0755), 0);
	tree_make("root/w", "a=1 d/ d/x=1");
	fd = open(in("upper", "big"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	for (int64_t at = 0; at < 2 << 20; at += 4096)
		assert_int_equal(pwrite(fd, "x", 1, at), 1);
	(void)close(fd);
	tree_make("upper", "a=2 d- n/ n/f=1");
	c = commit_make();
	assert_int_equal(statvfs(in("root", "."), &before), 0);
	assert_int_equal(commit_with(&c), -ENOSPC);
	assert_int_equal(out.state, COMMIT_FULL);
	assert_string_equal(tree_read(in("root", "w")), "a=1 d/ d/x=1 ");
	check_store_empty();
	assert_int_equal(statvfs(in("root", "."), &after), 0);
	assert_true(after.f_bavail + 2 >= before.f_bavail);
	(void)umount(in("root", "."));
}

static void write_map(const char *file, const char *text)
{
	_cleanup_close_ int fd = open(file, O_WRONLY | O_CLOEXEC);

	(void)!write(fd, text, strlen(text));
}

static bool enter_namespaces(void)
{
	int uid = (int)geteuid(), gid = (int)getegid();

	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		return false;
	if (uid) {
		char map[64];

		write_map("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "%d %d 1", uid, uid);
		write_map("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof(map), "%d %d 1", gid, gid);
		write_map("/proc/self/gid_map", map);
	}
	return mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) == 0;
}

static void test_full(void **state _unused_)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (!enter_namespaces())
			_exit(77);
		full_disk();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no mount namespace here: a full disk was not tried\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* A workspace that is a mount of its own keeps its store inside, out of what is counted and applied. */
static void test_inside(void **state _unused_)
{
	struct workspace_place closed[] = { { "w", NULL }, { NULL, NULL } };
	char path[256];
	struct commit c = commit_make();
	int fd;

	(void)snprintf(path, sizeof(path), "%s/root/w/", top);
	closed[0].path = path;
	fd = commit_store_open(closed, "w", c.workspace_fd, NULL);
	assert_true(fd >= 0);
	(void)close(c.store_fd);
	c.store_fd = fd;
	c.quota_inodes = 2;
	tree_make("upper", "a=1 b=2");
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.inodes_before, 0);
	assert_int_equal(access(in("root/w", ".atoll-commit/usage"), F_OK), 0);
	assert_int_equal(commit_recover_all(closed), 0);
}

static void test_store_of_another(void **state _unused_)
{
	struct error err = { 0 };
	_cleanup_close_ int fd = open(in("root", "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int store = -EBADF;

	assert_int_equal(mkdir(in("root", ".atoll-commit"), 0777), 0);
	assert_int_equal(chmod(in("root", ".atoll-commit"), 0777), 0);
	store = commit_store_open(places, "w", fd, &err);
	/* Not trusted: the one inside, which is new and ours, is. */
	assert_true(store >= 0);
	assert_int_equal(access(in("root/w", ".atoll-commit"), F_OK), 0);
	assert_int_equal(access(in("root", ".atoll-commit/w"), F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* As root, "rootless" makes it another user's. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing),
		TEST(test_files),
		TEST(test_copied_up),
		TEST(test_directories),
		TEST(test_directory_mode),
		TEST(test_removals),
		TEST(test_opaque),
		TEST(test_foreign_opaque),
		TEST(test_opaque_spares_the_new),
		TEST(test_type_changes),
		TEST(test_links),
		TEST(test_special),
		TEST(test_hard_links),
		TEST(test_sparse),
		TEST(test_closed),
		TEST(test_conflicts),
		TEST(test_list),
		TEST(test_list_bound),
		TEST(test_deep),
		TEST(test_quota),
		TEST(test_quota_bytes),
		TEST(test_two_at_once),
		TEST(test_full),
		TEST(test_inside),
		TEST(test_store_of_another),
	};

	if (argc > 1 && geteuid() == 0 && strcmp(argv[1], "rootless") == 0 &&
	    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
	     prctl(PR_SET_DUMPABLE, 1) < 0)) /* else /proc/self stays root's */
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
