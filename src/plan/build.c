/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision → plan. The operations stand in this order: file system, devices, proc, pivot, the caller's files, read-only remounts,
 * rlimits, Landlock, and the filter last. Everything a sandbox sees is named here and nowhere else.
 *
 * Without namespaces, programs see the host's paths. What they may read and write is Landlock's alone: the same directories of /usr and
 * entries of /etc that other sandboxes show, and a place of their own, PLACE_DIR/NUMBER, with /sandbox, /tmp and /build in it. Words
 * and variables that name these paths are rewritten. Code is not.
 */
#include "plan/build.h"

#include "plan/filter.h"
#include "plan/relay-book.h"
#include "plan/wire.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum {
	/* The root has few sizes, so that sandboxes made ahead fit many requests. */
	ROOT_BYTES = 8 << 20,
	ROOT_INODES = 4096,
	BLOCK_BYTES = 4096,
	SHM_INODES = 1024,
	COLLECT_FILES_MAX = 1000,
};

enum { PLACE_PATHS_MAX = _PLACE_DIR_MAX + 3 }; /* directories of a place, kit, prelude, the end */

/* Beside the product of a compiler. */
#define PRELUDE_FILE ".atoll-prelude"

/* Remembers the first failure, so that a list of adds needs no checks. */
struct plan_builder {
	struct plan *plan;
	int r;
	const struct place_path *places; /* NULL: words name the paths of sandboxes */
	struct place_path place_paths[PLACE_PATHS_MAX];
	char place_text[_PLACE_DIR_MAX][64];
	char prelude[96]; /* the path of the prelude in the place */
};

static void build_op(struct plan_builder *b, struct op op, struct op_args args)
{
	if (b->r == 0)
		b->r = plan_add(b->plan, op, args);
}

/* An operation that is its texts, and one that is its numbers. */
static void build_texts(struct plan_builder *b, enum op_kind kind, const char *text,
			const char *target)
{
	build_op(b, (struct op){ .kind = (uint16_t)kind },
		 (struct op_args){ .a = text, .b = target });
}

static void build_numbers(struct plan_builder *b, enum op_kind kind, int64_t value, int64_t value2)
{
	build_op(b, (struct op){ .kind = (uint16_t)kind, .value = value, .value2 = value2 },
		 (struct op_args){ 0 });
}

static void build_dir(struct plan_builder *b, const char *target)
{
	build_op(b, (struct op){ .kind = OP_DIR, .mode = 0755 }, (struct op_args){ .b = target });
}

static void build_text(struct plan_builder *b, const char *target, const char *text)
{
	build_op(b, (struct op){ .kind = OP_TEXT, .mode = 0644 },
		 (struct op_args){ .a = text, .b = target });
}

static void build_show(struct plan_builder *b, const char *path, uint16_t flags)
{
	build_op(b, (struct op){ .kind = OP_SHOW, .flags = flags },
		 (struct op_args){ .a = path, .b = path });
}

/* The same path inside an image, if there is one. */
static void build_show_of(struct plan_builder *b, const char *image, const char *path,
			  uint16_t flags)
{
	char source[PLAN_PATH_MAX];
	int n = snprintf(source, sizeof(source), "%s%s", image ? image : "", path);

	if (n < 0 || (size_t)n >= sizeof(source))
		b->r = b->r ? b->r : -ENAMETOOLONG;
	build_op(b, (struct op){ .kind = OP_SHOW, .flags = flags },
		 (struct op_args){ .a = source, .b = path });
}

/* Makes the directories above a file, except those in its first `skip` bytes. The child skips repeats. */
static void build_parents(struct plan_builder *b, const char *path, size_t skip)
{
	char dir[PLAN_PATH_MAX];

	for (const char *slash = strchr(path + skip, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);

		memcpy(dir, path, n);
		dir[n] = '\0';
		build_dir(b, dir);
	}
}

/* What a program may do with the root and with what is shown there. */
static uint16_t build_root_flags(const struct decision *d)
{
	return d->writable_root ? OP_WRITABLE : 0;
}

static void build_etc_entry(struct plan_builder *b, const char *name, uint16_t flags)
{
	char path[256] = "/etc/";
	size_t n = strlen(name);

	if (n >= sizeof(path) - strlen(path)) {
		b->r = b->r ? b->r : -ENAMETOOLONG;
		return;
	}
	memcpy(path + strlen(path), name, n + 1);
	build_parents(b, path, sizeof("/etc"));
	build_show(b, path, flags | OP_OPTIONAL | OP_READABLE | OP_SMALL);
}

static bool build_has_word(const char *const *list, const char *word)
{
	for (; *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

static void build_etc(struct plan_builder *b, const struct decision *d)
{
	build_dir(b, "/etc");
	build_text(b, "/etc/passwd",
		   "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
		   "sandbox:x:1000:1000:sandbox:/sandbox:/bin/sh\n"
		   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	build_text(b, "/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n");
	build_text(b, "/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n");
	if (d->network == NETWORK_ALLOW)
		build_text(b, "/etc/resolv.conf", "nameserver 127.0.0.1\n");
	for (const char **e = d->policy->etc; *e; e++)
		build_etc_entry(b, *e, build_root_flags(d));
	if (d->language)
		for (const char **e = d->language->etc; *e; e++)
			if (!build_has_word(d->policy->etc, *e))
				build_etc_entry(b, *e, build_root_flags(d));
}

/* Rounded to steps: the fixed content, and room for the files of SANDBOX_BUILD if they are here. */
static struct op build_root_op(const struct plan_input *in)
{
	int64_t bytes = 0, inodes = 0;

	for (size_t i = 0; !in->build_scratch && i < in->n_files; i++)
		if (strcmp(in->files[i].base, SANDBOX_BUILD) == 0) {
			bytes += (int64_t)in->files[i].data.len + BLOCK_BYTES;
			inodes++;
		}
	return (struct op){
		.kind = OP_ROOT,
		.flags = build_root_flags(in->decision),
		.value = ROOT_BYTES + (bytes + ROOT_BYTES - 1) / ROOT_BYTES * ROOT_BYTES,
		.value2 = ROOT_INODES + (inodes + ROOT_INODES - 1) / ROOT_INODES * ROOT_INODES
	};
}

int64_t plan_cpus(const struct limits *limits)
{
	return MAX((limits->cpus_milli + 999) / 1000, 1);
}

/*
 * The processors that the program may use, where libc and others look for them (sysconf, std::thread, os.cpu_count()). The
 * files are the root's own, because a mount of sysfs would show the host's devices.
 */
static void build_machine(struct plan_builder *b, const struct plan_input *in)
{
	static const char *const lists[] = { "online", "possible", "present" };
	const char *dir = SANDBOX_SYS "/devices/system/cpu";
	const int64_t cpus = plan_cpus(&in->decision->limits);
	char text[32], path[64];

	(void)snprintf(text, sizeof(text), cpus > 1 ? "0-%" PRId64 "\n" : "0\n", cpus - 1);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, lists[i]);
		if (i == 0)
			build_parents(b, path, 1);
		build_text(b, path, text);
	}
	if (in->prelude) {
		build_parents(b, SANDBOX_PRELUDE, sizeof(SANDBOX_SYS));
		build_text(b, SANDBOX_PRELUDE, in->prelude);
	}
}

/* Where a program writes to a directory of the host. */
static const char *build_space_of(const struct decision *d)
{
	return d->workspace_target ? d->workspace_target : SANDBOX_SPACE;
}

static void build_root(struct plan_builder *b, const struct plan_input *in)
{
	static const char *const links[] = {
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
	};
	const struct decision *d = in->decision;
	const char *image = d->request->image;
	const uint16_t flags = build_root_flags(d);

	build_texts(b, OP_HOSTNAME, "sandbox", NULL);
	build_op(b, build_root_op(in), (struct op_args){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		build_show_of(b, image, links[i], flags | OP_OPTIONAL);
	if (image) {
		build_show_of(b, image, "/usr", flags | OP_OPTIONAL);
		build_show_of(b, image, "/opt", flags | OP_OPTIONAL);
		build_show_of(b, image, "/etc", flags | OP_OPTIONAL);
	} else {
		for (const char **usr = d->policy->usr; *usr; usr++) {
			build_parents(b, *usr, 1);
			build_show(b, *usr, flags);
		}
		build_etc(b, d);
	}
	if (in->kit)
		build_op(b, (struct op){ .kind = OP_SHOW, .flags = OP_OPTIONAL | OP_READABLE },
			 (struct op_args){ .a = in->kit, .b = SANDBOX_KIT });
	for (size_t i = 0; i < d->request->n_mounts; i++) {
		const struct request_mount *m = &d->request->mounts[i];

		/* As a workspace is, behind scratch. */
		if (m->writable)
			continue;
		build_parents(b, m->target, 1);
		build_op(b, (struct op){ .kind = OP_SHOW, .flags = OP_EXACT },
			 (struct op_args){ .a = m->source, .b = m->target });
	}
	build_machine(b, in);
	build_dir(b, "/var");
	build_texts(b, OP_SYMLINK, "/tmp", "/var/tmp");
}

static void build_devices(struct plan_builder *b, const struct decision *d)
{
	build_texts(b, OP_DEV, NULL, "/dev");
	build_op(b,
		 (struct op){ .kind = OP_TMPFS,
			      .mode = 0777,
			      .value = d->limits.memory_bytes,
			      .value2 = SHM_INODES },
		 (struct op_args){ .b = "/dev/shm" });
	build_op(b, (struct op){ .kind = OP_DEVPTS, .value = d->tty },
		 (struct op_args){ .b = "/dev/pts" });
}

_Static_assert((int)NETWORK_RULES_MAX == (int)RELAY_RULES_MAX &&
		       (int)NETWORK_PORTS_MAX == (int)RELAY_PORTS_MAX,
	       "what a policy permits, a relay can do");

static int build_allow(void *data, const struct destination *destination)
{
	build_op(data, (struct op){ .kind = OP_ALLOW, .value = destination->port },
		 (struct op_args){ .a = destination->host });
	return 0;
}

static void build_work(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;

	build_op(b,
		 (struct op){ .kind = OP_SCRATCH,
			      .flags = build_root_flags(d),
			      .value = d->limits.disk_bytes,
			      .value2 = d->limits.files },
		 (struct op_args){ 0 });
	build_op(b, (struct op){ .kind = OP_SCRATCH_DIR, .mode = 0755 },
		 (struct op_args){ .a = "work", .b = SANDBOX_WORK });
	build_op(b, (struct op){ .kind = OP_SCRATCH_DIR, .mode = 0777 },
		 (struct op_args){ .a = "tmp", .b = "/tmp" });
	if (in->build_scratch)
		build_op(b, (struct op){ .kind = OP_SCRATCH_DIR, .mode = 0755 },
			 (struct op_args){ .a = "build", .b = SANDBOX_BUILD });
	/* Until the run has ended, writes to the workspace are on scratch, too. */
	if (d->workspace) {
		build_parents(b, build_space_of(d), 1);
		build_op(b,
			 (struct op){ .kind = OP_WORKSPACE,
				      .flags = (d->workdir ? OP_WORKDIR : 0) |
					       (d->workspace_target ? OP_EXACT : 0) },
			 (struct op_args){ .a = d->workspace, .b = build_space_of(d) });
	}
	build_texts(b, OP_PROC, NULL, "/proc");
	if (d->network != NETWORK_OFF)
		build_texts(b, OP_LOOPBACK, NULL, NULL);
	if (d->network == NETWORK_ALLOW) {
		build_numbers(b, OP_RELAY, d->policy->network_bytes, 0);
		(void)!decision_each_destination(d, build_allow, b);
	}
	build_texts(b, OP_PIVOT, NULL, NULL);
}

static void build_files(struct plan_builder *b, const struct plan_input *in)
{
	for (size_t i = 0; i < in->n_files; i++) {
		const struct build_file *f = &in->files[i];
		const bool built = strcmp(f->base, SANDBOX_BUILD) == 0;
		const char *base = !b->places ? f->base
				   : built    ? b->place_text[PLACE_BUILD]
					      : b->place_text[PLACE_WORK];
		const bool made = b->places || in->build_scratch || !built;
		char path[PLAN_PATH_MAX];
		int n = snprintf(path, sizeof(path), "%s/%s", base, f->path);

		assert(built || strcmp(f->base, SANDBOX_WORK) == 0);
		assert(f->path[0] != '/');
		if (n < 0 || (size_t)n >= sizeof(path)) {
			b->r = b->r ? b->r : -ENAMETOOLONG;
			return;
		}
		build_parents(b, path, made ? strlen(base) + 1 : 1);
		build_op(b, (struct op){ .kind = OP_FILE, .mode = f->mode },
			 (struct op_args){ .a = f->data.data ? f->data.data : "",
					   .a_len = f->data.len,
					   .b = path });
	}
}

/* The right to read one entry of /etc, if the host has it. */
static void build_etc_access(struct plan_builder *b, const char *name)
{
	char path[PLAN_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/etc/%s", name);
	build_op(b,
		 (struct op){ .kind = OP_LANDLOCK,
			      .flags = OP_OPTIONAL,
			      .value = ACCESS_READ,
			      .value2 = 1 },
		 (struct op_args){ .b = path });
}

static void build_landlock(struct plan_builder *b, const char *path, int64_t access, bool no_tcp)
{
	/* value2: TCP is handled too, that is, closed. */
	build_op(b, (struct op){ .kind = OP_LANDLOCK, .value = access, .value2 = no_tcp },
		 (struct op_args){ .b = path });
}

/* A program without files: it reads its runtime, its libraries and itself, and writes nothing. */
static void build_library_paths(struct plan_builder *b, const struct decision *d)
{
	for (const char **usr = d->policy->usr; *usr; usr++)
		build_landlock(b, *usr, ACCESS_READ, true);
	for (const char **e = d->policy->etc; *e; e++)
		build_etc_access(b, *e);
	for (const char **e = d->language ? d->language->etc : NULL; e && *e; e++)
		if (!build_has_word(d->policy->etc, *e))
			build_etc_access(b, *e);
	build_landlock(b, SANDBOX_WORK, ACCESS_READ, true);
	build_landlock(b, SANDBOX_SYS, ACCESS_READ, true);
	build_landlock(b, "/dev", ACCESS_DEVICE, true);
}

static void build_paths(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;
	const int64_t write = ACCESS_READ | ACCESS_WRITE;
	const bool no_tcp = d->network == NETWORK_OFF;

	if (d->libraries_only) {
		build_library_paths(b, d);
		return;
	}
	/*
	 * A copy of the program finds other mounts at these paths, to which the rules for the paths below do not apply. There the
	 * read-only mounts alone keep it from writing.
	 */
	build_landlock(b, "/", d->forkable || d->writable_root ? write : ACCESS_READ, no_tcp);
	if (!d->read_only)
		build_landlock(b, SANDBOX_WORK, write, no_tcp);
	build_landlock(b, "/tmp", write, no_tcp);
	if (in->build_scratch && !d->read_only)
		build_landlock(b, SANDBOX_BUILD, write, no_tcp);
	if (d->workspace && !d->read_only)
		build_landlock(b, build_space_of(d), write, no_tcp);
	build_landlock(b, "/dev/shm", write, no_tcp);
	build_landlock(b, "/dev", ACCESS_DEVICE, no_tcp);
}

/* pids: of the program, and other processes of its user. */
static void build_rlimits(struct plan_builder *b, const struct decision *d, int64_t pids,
			  int64_t file_bytes)
{
	const struct limits *l = &d->limits;
	const struct {
		int resource;
		int64_t limit;
	} rlimits[] = {
		/* 1 and not 0: with 0 the kernel still starts the host's helper when core_pattern is a pipe. */
		{ RLIMIT_CORE, 1 },
		{ RLIMIT_FSIZE, file_bytes },
		{ RLIMIT_NOFILE, l->open_files },
		{ RLIMIT_STACK, l->stack_bytes },
		{ RLIMIT_MEMLOCK, 64 * KiB },
		{ RLIMIT_MSGQUEUE, 800 * KiB },
		{ RLIMIT_RTPRIO, 0 },
		{ RLIMIT_NICE, 0 },
		{ RLIMIT_SIGPENDING, 1024 },
		{ RLIMIT_NPROC, pids },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rlimits); i++)
		build_numbers(b, OP_RLIMIT, rlimits[i].resource, rlimits[i].limit);
	if (d->facts->cgroup == CGROUP_NONE)
		build_numbers(b, OP_RLIMIT, RLIMIT_DATA, l->memory_bytes);
}

static void build_lockdown(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;
	const struct limits *l = &d->limits;

	if (d->read_only)
		build_texts(b, OP_READONLY, NULL, SANDBOX_WORK);
	if (d->read_only && in->build_scratch)
		build_texts(b, OP_READONLY, NULL, SANDBOX_BUILD);
	if (d->read_only && d->workspace)
		build_texts(b, OP_READONLY, NULL, build_space_of(d));
	if (!d->writable_root)
		build_texts(b, OP_READONLY, NULL, "/");
	/* init counts as a process of this user; a cgroup's limit must be reached first. */
	build_rlimits(b, d, l->pids + (d->facts->cgroup_controllers & CGROUP_PIDS ? 64 : 1),
		      l->file_size_bytes);
	build_paths(b, in);
	build_numbers(b, OP_REQUIRE, d->policy->required, 0);
	build_numbers(b, OP_SECCOMP, d->network == NETWORK_OFF ? FILTER_OFF : FILTER_DEFAULT, 0);
}

static bool place_is_name_byte(char c)
{
	return isalnum((unsigned char)c) || strchr("._-", c);
}

int build_place_word(const struct place_path *places, const char *word, struct buf *ret)
{
	const char *at = word;
	int r = 0;

	while (r == 0 && *at) {
		/* At the begin of a word, after a separator, or after an option of one letter: -I/kit. */
		bool begins = *at == '/' &&
			      (at == word || (at == word + 2 && *word == '-') ||
			       (at[-1] != '/' && at[-1] != '~' && !place_is_name_byte(at[-1])));
		const struct place_path *path = places;

		for (; begins && path->from; path++) {
			size_t n = strlen(path->from);

			if (strncmp(at, path->from, n) == 0 &&
			    (!at[n] || !place_is_name_byte(at[n])))
				break;
		}
		if (!begins || !path->from)
			path = NULL;
		r = path ? buf_puts(ret, path->to) : buf_append(ret, at, 1);
		at += path ? strlen(path->from) : 1;
	}
	return r;
}

const char *const plan_base_env[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/sandbox",
	"USER=sandbox",
	"LOGNAME=sandbox",
	/* Not LANG: only this category differs from C, and each category costs a file at start-up. */
	"LC_CTYPE=C.UTF-8",
	"TMPDIR=/tmp",
	/* Processors, for `nproc`, OpenMP and libraries that follow it; for programs of Go; for Rust's usual pool of threads. */
	"OMP_NUM_THREADS=" PLAN_CPUS,
	"GOMAXPROCS=" PLAN_CPUS,
	"RAYON_NUM_THREADS=" PLAN_CPUS,
	NULL,
};

/* Whether a later word of the list sets the same variable. */
static bool build_env_is_replaced(const char *word, const char *const *later)
{
	size_t n = strcspn(word, "=");

	for (; later && *later; later++)
		if (strncmp(*later, word, n) == 0 && (*later)[n] == '=')
			return true;
	return false;
}

static void build_word(struct plan_builder *b, enum op_kind kind, const char *word)
{
	_cleanup_buf_ struct buf placed = { .max = PLAN_BYTES_MAX };

	if (b->places) {
		b->r = b->r ? b->r : build_place_word(b->places, word, &placed);
		word = placed.data ? placed.data : "";
	}
	build_texts(b, kind, word, NULL);
}

/* The base environment and the words on top of it; of each variable only the last word. */
static void build_env(struct plan_builder *b, enum op_kind kind, const char *const *env,
		      const struct limits *limits)
{
	for (const char *const *e = plan_base_env; *e; e++) {
		const char *mark = strstr(*e, PLAN_CPUS);
		char word[64];

		if (build_env_is_replaced(*e, env))
			continue;
		if (mark)
			(void)snprintf(word, sizeof(word), "%.*s%" PRId64, (int)(mark - *e), *e,
				       plan_cpus(limits));
		build_word(b, kind, mark ? word : *e);
	}
	for (const char *const *e = env; e && *e; e++)
		if (!build_env_is_replaced(*e, e + 1))
			build_word(b, kind, *e);
}

static void build_words(struct plan_builder *b, enum op_kind kind, const char *const *words)
{
	/*
	 * An empty word is a span of length 0, which op_args cannot distinguish from "use strlen". The result
	 * is the same.
	 */
	for (; words && *words; words++)
		build_word(b, kind, *words);
}

static void build_warm(struct plan_builder *b, const struct plan_warm *warm,
		       const struct limits *limits)
{
	build_op(b, (struct op){ .kind = OP_WARM, .value = warm->kind },
		 (struct op_args){ .a = warm->name });
	if (warm->kind == WARM_FORK) {
		build_words(b, OP_PRELOAD, warm->modules);
		return;
	}
	build_words(b, OP_WARM_ARG, warm->argv);
	build_env(b, OP_WARM_ENV, warm->env, limits);
	if (warm->file)
		build_texts(b, OP_WARM_FILE, warm->file, NULL);
}

static void build_stage(struct plan_builder *b, const struct decision *d,
			const struct stage_spec *stage)
{
	static const char term[] = "TERM=xterm"; /* understood by every current terminal */
	const struct limits *l = stage->limits;
	const int64_t limits[_STAGE_LIMIT_MAX] = {
		[STAGE_WALL_MS] = l->timeout_ms,
		[STAGE_WALL_MAX_MS] = stage->judged ? l->timeout_ms * WALL_EXTENDED : 0,
		[STAGE_CPU_MS] = l->cpu_time_ms,
		[STAGE_MEMORY_BYTES] = l->memory_bytes,
		[STAGE_SWAP_BYTES] = l->swap_bytes,
		[STAGE_CPU_MILLI] = l->cpus_milli,
		[STAGE_CPU_SHARES] = l->cpu_shares,
		[STAGE_PIDS] = l->pids,
	};

	build_texts(b, OP_STAGE, stage->name, NULL);
	build_words(b, OP_ARG, stage->argv);
	if (d->tty && !build_env_is_replaced(term, stage->env))
		build_texts(b, OP_ENV, term, NULL);
	build_env(b, OP_ENV, stage->env, l);
	if (stage->stdin_data.data)
		build_op(b, (struct op){ .kind = OP_STDIN },
			 (struct op_args){ .a = stage->stdin_data.len ? stage->stdin_data.data : "",
					   .a_len = stage->stdin_data.len });
	for (int i = 0; i < _STAGE_LIMIT_MAX; i++) {
		if (i == STAGE_WALL_MAX_MS && limits[i] == 0)
			continue;
		build_numbers(b, OP_LIMIT, i, limits[i]);
	}
}

static void build_full(struct plan_builder *b, const struct plan_input *in)
{
	build_root(b, in);
	build_devices(b, in->decision);
	build_work(b, in);
	build_files(b, in);
	build_lockdown(b, in);
}

/* --- without namespaces --- */

static void minimal_choose_places(struct plan_builder *b, const struct plan_input *in)
{
	size_t n = 0;

	for (; n < _PLACE_DIR_MAX; n++) {
		(void)snprintf(b->place_text[n], sizeof(b->place_text[n]), PLACE_DIR "/%u%s",
			       in->place, place_dirs[n]);
		b->place_paths[n] = (struct place_path){ place_dirs[n], b->place_text[n] };
	}
	if (in->kit)
		b->place_paths[n++] = (struct place_path){ SANDBOX_KIT, in->kit };
	if (in->prelude) {
		(void)snprintf(b->prelude, sizeof(b->prelude), "%s/" PRELUDE_FILE,
			       b->place_text[PLACE_BUILD]);
		b->place_paths[n++] = (struct place_path){ SANDBOX_PRELUDE, b->prelude };
	}
	assert(n < PLACE_PATHS_MAX);
	b->place_paths[n] = (struct place_path){ 0 };
	b->places = b->place_paths;
}

static void minimal_access(struct plan_builder *b, const char *path, int64_t access)
{
	build_op(b,
		 (struct op){
			 .kind = OP_LANDLOCK, .flags = OP_OPTIONAL, .value = access, .value2 = 1 },
		 (struct op_args){ .b = path });
}

/* The files of the host that other sandboxes show. /bin and the like are links to /usr, or directories beside it. */
static void minimal_host(struct plan_builder *b, const struct plan_input *in)
{
	static const char *const beside[] = {
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
	};
	static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					     "/dev/urandom" };
	const struct decision *d = in->decision;

	for (const char **usr = d->policy->usr; *usr; usr++)
		build_landlock(b, *usr, ACCESS_READ, true);
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		minimal_access(b, beside[i], ACCESS_READ);
	for (const char **e = d->policy->etc; *e; e++)
		build_etc_access(b, *e);
	for (const char **e = d->language ? d->language->etc : NULL; e && *e; e++)
		build_etc_access(b, *e);
	if (in->kit)
		minimal_access(b, in->kit, ACCESS_READ);
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		minimal_access(b, nodes[i], ACCESS_DEVICE);
}

static void build_minimal(struct plan_builder *b, const struct plan_input *in)
{
	const int64_t write = ACCESS_READ | ACCESS_WRITE;
	const struct decision *d = in->decision;

	minimal_choose_places(b, in);
	build_op(b, (struct op){ .kind = OP_PLACE, .value = in->place },
		 (struct op_args){ .b = b->place_text[PLACE_WORK] });
	build_numbers(b, OP_SCRATCH, d->limits.disk_bytes, d->limits.files);
	build_files(b, in);
	if (in->prelude)
		build_op(b, (struct op){ .kind = OP_FILE, .mode = 0644 },
			 (struct op_args){ .a = in->prelude, .b = b->prelude });
	/* Its init has another user. No file system keeps the bound of all files, so none of them may exceed it. */
	build_rlimits(b, d, d->limits.pids, MIN(d->limits.file_size_bytes, d->limits.disk_bytes));
	minimal_host(b, in);
	build_landlock(b, b->place_text[PLACE_WORK],
		       d->read_only || d->libraries_only ? ACCESS_READ : write, true);
	build_landlock(b, b->place_text[PLACE_TMP], d->libraries_only ? ACCESS_READ : write, true);
	build_landlock(b, b->place_text[PLACE_BUILD], ACCESS_READ, true);
	build_numbers(b, OP_REQUIRE, d->policy->required, 0);
	build_numbers(b, OP_SECCOMP, FILTER_MINIMAL, 0);
}

int plan_build(const struct plan_input *in, struct plan *ret, struct error *err)
{
	static void (*const prepare[])(struct plan_builder *, const struct plan_input *) = {
		[ISOLATION_FULL] = build_full,
		[ISOLATION_MINIMAL] = build_minimal,
	};
	struct plan plan;
	struct plan_builder b = { .plan = &plan };

	assert(in->decision->policy->isolation < ARRAY_SIZE(prepare));
	plan_init(&plan);
	prepare[in->decision->policy->isolation](&b, in);
	if (in->collect)
		build_numbers(&b, OP_COLLECT, COLLECT_FILES_MAX, in->decision->limits.disk_bytes);
	if (in->decision->workspace && !in->decision->read_only)
		build_numbers(&b, OP_COMMIT, in->decision->commit, 0);
	/* A cell is a sandbox of namespaces. */
	if (in->warm && !b.places)
		build_warm(&b, in->warm, &in->decision->limits);
	for (size_t i = 0; i < in->n_stages; i++)
		build_stage(&b, in->decision, &in->stages[i]);
	if (b.r < 0) {
		plan_done(&plan);
		return error_set(
			err, ERROR_INPUT, -b.r,
			"the request is too large for one run: code, files and arguments may "
			"hold %d MiB together",
			PLAN_BYTES_MAX >> 20);
	}
	*ret = plan;
	return 0;
}
