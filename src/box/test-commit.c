/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a commit on each kind of entry, its list, and its refusals. The upper layer is made by hand. */
#include "box/test-commit-run.h"

/* Waits past the clock tick that inodes take their times from. */
static void let_time_pass(void)
{
	(void)usleep(20000);
}

/* Workspace and upper layer before; workspace and list after. */
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

/*
 * Root changes no file in place that does not belong to the workspace's owner: it may be a hard link to any
 * file.
 */
static void test_anothers_file(void **state _unused_)
{
	struct stat st;

	if (geteuid() != 0) {
		print_message("# only root can give files away\n");
		return;
	}
	tree_make("root/w", "x=1 y=1");
	assert_int_equal(chown(in("root/w", "x"), 4321, 4321), 0);
	tree_make("upper", "x=1@777 y=1@777");
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "x=1 y=1@777 ");
	assert_int_equal(stat(in("root/w", "x"), &st), 0);
	assert_int_equal(st.st_uid, 4321);
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
	/* Also into an unreadable directory, whose mode is restored. */
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
	check("d/ d/x=1 d/s/ d/s/y=2 d/keep=k d/m/ d/m/z=1", "d/! d/keep=new d/n=1 d/m/",
	      "d/ d/keep=new d/m/ d/n=1 ", "d/keep* d/m/z- d/n+ d/s- d/s/y- d/x- ");
}

/* A program can set the attribute of the other kind: it has no effect. */
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing),	   TEST(test_files),
		TEST(test_copied_up),	   TEST(test_anothers_file),
		TEST(test_directories),	   TEST(test_directory_mode),
		TEST(test_removals),	   TEST(test_opaque),
		TEST(test_foreign_opaque), TEST(test_opaque_spares_the_new),
		TEST(test_type_changes),   TEST(test_links),
		TEST(test_special),	   TEST(test_hard_links),
		TEST(test_sparse),	   TEST(test_closed),
		TEST(test_conflicts),	   TEST(test_list),
	};

	if (become(argc, argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
