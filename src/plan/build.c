/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision → plan. The operations stand in this order: file system, devices,
 * proc, pivot, the caller's files, read-only remounts, rlimits, Landlock, and the filter last. Everything a
 * sandbox sees is named here and nowhere else.
 */
#include "plan/build.h"

#include "plan/build-private.h"
#include "plan/filter.h"
#include "plan/relay-book.h"
#include "plan/wire.h"

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

void build_op(struct plan_builder *b, struct op op, struct op_args args)
{
	if (b->r == 0)
		b->r = plan_add(b->plan, op, args);
}

static void add_dir(struct plan_builder *b, const char *target)
{
	build_op(b, (struct op){ .kind = OP_DIR, .mode = 0755 }, (struct op_args){ .b = target });
}

static void add_text(struct plan_builder *b, const char *target, const char *text)
{
	build_op(b, (struct op){ .kind = OP_TEXT, .mode = 0644 },
		 (struct op_args){ .a = text, .b = target });
}

static void add_show(struct plan_builder *b, const char *path, uint16_t flags)
{
	build_op(b, (struct op){ .kind = OP_SHOW, .flags = flags },
		 (struct op_args){ .a = path, .b = path });
}

/* The same path inside an image, if there is one. */
static void add_show_of(struct plan_builder *b, const char *image, const char *path, uint16_t flags)
{
	char source[PLAN_PATH_MAX];
	int n = snprintf(source, sizeof(source), "%s%s", image ? image : "", path);

	if (n < 0 || (size_t)n >= sizeof(source))
		b->r = b->r ? b->r : -ENAMETOOLONG;
	build_op(b, (struct op){ .kind = OP_SHOW, .flags = flags },
		 (struct op_args){ .a = source, .b = path });
}

void build_parents(struct plan_builder *b, const char *path, size_t skip)
{
	char dir[PLAN_PATH_MAX];

	for (const char *slash = strchr(path + skip, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);

		memcpy(dir, path, n);
		dir[n] = '\0';
		add_dir(b, dir);
	}
}

/* What a program may do with the root and with what is shown there. */
static uint16_t root_flags(const struct decision *d)
{
	return d->writable_root ? OP_WRITABLE : 0;
}

static void add_etc_entry(struct plan_builder *b, const char *name, uint16_t flags)
{
	char path[256] = "/etc/";
	size_t n = strlen(name);

	if (n >= sizeof(path) - strlen(path)) {
		b->r = b->r ? b->r : -ENAMETOOLONG;
		return;
	}
	memcpy(path + strlen(path), name, n + 1);
	build_parents(b, path, sizeof("/etc"));
	add_show(b, path, flags | OP_OPTIONAL | OP_READABLE | OP_SMALL);
}

static bool word_list_has(const char *const *list, const char *word)
{
	for (; *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

static void add_etc(struct plan_builder *b, const struct decision *d)
{
	add_dir(b, "/etc");
	add_text(b, "/etc/passwd",
		 "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
		 "sandbox:x:1000:1000:sandbox:/sandbox:/bin/sh\n"
		 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	add_text(b, "/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n");
	add_text(b, "/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n");
	if (d->network == NETWORK_ALLOW)
		add_text(b, "/etc/resolv.conf", "nameserver 127.0.0.1\n");
	for (const char **e = d->policy->etc; *e; e++)
		add_etc_entry(b, *e, root_flags(d));
	if (d->language)
		for (const char **e = d->language->etc; *e; e++)
			if (!word_list_has(d->policy->etc, *e))
				add_etc_entry(b, *e, root_flags(d));
}

/* Rounded to steps: the fixed content, and room for the files of SANDBOX_BUILD if they are here. */
static struct op root_op(const struct plan_input *in)
{
	int64_t bytes = 0, inodes = 0;

	for (size_t i = 0; !in->build_scratch && i < in->n_files; i++)
		if (strcmp(in->files[i].base, SANDBOX_BUILD) == 0) {
			bytes += (int64_t)in->files[i].data.len + BLOCK_BYTES;
			inodes++;
		}
	return (struct op){
		.kind = OP_ROOT,
		.flags = root_flags(in->decision),
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
static void add_machine(struct plan_builder *b, const struct plan_input *in)
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
		add_text(b, path, text);
	}
	if (in->prelude) {
		build_parents(b, SANDBOX_PRELUDE, sizeof(SANDBOX_SYS));
		add_text(b, SANDBOX_PRELUDE, in->prelude);
	}
}

static void add_root(struct plan_builder *b, const struct plan_input *in)
{
	static const char *const links[] = {
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
	};
	const struct decision *d = in->decision;
	const char *image = d->request->image;
	const uint16_t flags = root_flags(d);

	build_op(b, (struct op){ .kind = OP_HOSTNAME }, (struct op_args){ .a = "sandbox" });
	build_op(b, root_op(in), (struct op_args){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		add_show_of(b, image, links[i], flags | OP_OPTIONAL);
	if (image) {
		add_show_of(b, image, "/usr", flags | OP_OPTIONAL);
		add_show_of(b, image, "/opt", flags | OP_OPTIONAL);
		add_show_of(b, image, "/etc", flags | OP_OPTIONAL);
	} else {
		for (const char **usr = d->policy->usr; *usr; usr++) {
			build_parents(b, *usr, 1);
			add_show(b, *usr, flags);
		}
		add_etc(b, d);
	}
	if (in->kit)
		build_op(b, (struct op){ .kind = OP_SHOW, .flags = OP_OPTIONAL | OP_READABLE },
			 (struct op_args){ .a = in->kit, .b = SANDBOX_KIT });
	for (size_t i = 0; i < d->request->n_mounts; i++) {
		const struct request_mount *m = &d->request->mounts[i];

		build_parents(b, m->target, 1);
		build_op(b, (struct op){ .kind = OP_SHOW, .flags = OP_EXACT },
			 (struct op_args){ .a = m->source, .b = m->target });
	}
	add_machine(b, in);
	add_dir(b, "/var");
	build_op(b, (struct op){ .kind = OP_SYMLINK },
		 (struct op_args){ .a = "/tmp", .b = "/var/tmp" });
}

static void add_devices(struct plan_builder *b, const struct decision *d)
{
	build_op(b, (struct op){ .kind = OP_DEV }, (struct op_args){ .b = "/dev" });
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

static int add_allow(void *data, const struct destination *destination)
{
	build_op(data, (struct op){ .kind = OP_ALLOW, .value = destination->port },
		 (struct op_args){ .a = destination->host });
	return 0;
}

static void add_relay(struct plan_builder *b, const struct decision *d)
{
	build_op(b, (struct op){ .kind = OP_RELAY, .value = d->policy->network_bytes },
		 (struct op_args){ 0 });
	(void)!decision_each_destination(d, add_allow, b);
}

static void add_work(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;

	build_op(b,
		 (struct op){ .kind = OP_SCRATCH,
			      .flags = root_flags(d),
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
	if (d->workspace)
		build_op(b,
			 (struct op){ .kind = OP_WORKSPACE, .flags = d->workdir ? OP_WORKDIR : 0 },
			 (struct op_args){ .a = d->workspace, .b = SANDBOX_SPACE });
	build_op(b, (struct op){ .kind = OP_PROC }, (struct op_args){ .b = "/proc" });
	if (d->network != NETWORK_OFF)
		build_op(b, (struct op){ .kind = OP_LOOPBACK }, (struct op_args){ 0 });
	if (d->network == NETWORK_ALLOW)
		add_relay(b, d);
	build_op(b, (struct op){ .kind = OP_PIVOT }, (struct op_args){ 0 });
}

static void add_file_ops(struct plan_builder *b, const struct plan_input *in)
{
	for (size_t i = 0; i < in->n_files; i++) {
		const struct build_file *f = &in->files[i];
		char path[PLAN_PATH_MAX];
		bool made = in->build_scratch || strcmp(f->base, SANDBOX_BUILD) != 0;
		int n = snprintf(path, sizeof(path), "%s/%s", f->base, f->path);

		if (n < 0 || (size_t)n >= sizeof(path)) {
			b->r = b->r ? b->r : -ENAMETOOLONG;
			return;
		}
		build_parents(b, path, made ? strlen(f->base) + 1 : 1);
		build_op(b, (struct op){ .kind = OP_FILE, .mode = f->mode },
			 (struct op_args){ .a = f->data.data ? f->data.data : "",
					   .a_len = f->data.len,
					   .b = path });
	}
}

void build_etc_access(struct plan_builder *b, const char *name)
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

void build_landlock(struct plan_builder *b, const char *path, int64_t access, bool no_tcp)
{
	/* value2: TCP is handled too, that is, closed. */
	build_op(b, (struct op){ .kind = OP_LANDLOCK, .value = access, .value2 = no_tcp },
		 (struct op_args){ .b = path });
}

/* A program without files: it reads its runtime, its libraries and itself, and writes nothing. */
static void add_library_paths(struct plan_builder *b, const struct decision *d)
{
	for (const char **usr = d->policy->usr; *usr; usr++)
		build_landlock(b, *usr, ACCESS_READ, true);
	for (const char **e = d->policy->etc; *e; e++)
		build_etc_access(b, *e);
	for (const char **e = d->language ? d->language->etc : NULL; e && *e; e++)
		if (!word_list_has(d->policy->etc, *e))
			build_etc_access(b, *e);
	build_landlock(b, SANDBOX_WORK, ACCESS_READ, true);
	build_landlock(b, SANDBOX_SYS, ACCESS_READ, true);
	build_landlock(b, "/dev", ACCESS_DEVICE, true);
}

static void add_paths(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;
	const int64_t write = ACCESS_READ | ACCESS_WRITE;
	const bool no_tcp = d->network == NETWORK_OFF;

	if (d->libraries_only) {
		add_library_paths(b, d);
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
		build_landlock(b, SANDBOX_SPACE, write, no_tcp);
	build_landlock(b, "/dev/shm", write, no_tcp);
	build_landlock(b, "/dev", ACCESS_DEVICE, no_tcp);
}

static enum filter_profile filter_of(const struct decision *d)
{
	return d->network == NETWORK_OFF ? FILTER_OFF : FILTER_DEFAULT;
}

static void add_readonly(struct plan_builder *b, const char *target)
{
	build_op(b, (struct op){ .kind = OP_READONLY }, (struct op_args){ .b = target });
}

void build_rlimits(struct plan_builder *b, const struct decision *d, int64_t pids,
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
		build_op(b,
			 (struct op){ .kind = OP_RLIMIT,
				      .value = rlimits[i].resource,
				      .value2 = rlimits[i].limit },
			 (struct op_args){ 0 });
	if (d->facts->cgroup == CGROUP_NONE)
		build_op(b,
			 (struct op){ .kind = OP_RLIMIT,
				      .value = RLIMIT_DATA,
				      .value2 = l->memory_bytes },
			 (struct op_args){ 0 });
}

static void add_lockdown(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;
	const struct limits *l = &d->limits;

	if (d->read_only)
		add_readonly(b, SANDBOX_WORK);
	if (d->read_only && in->build_scratch)
		add_readonly(b, SANDBOX_BUILD);
	if (d->read_only && d->workspace)
		add_readonly(b, SANDBOX_SPACE);
	if (!d->writable_root)
		add_readonly(b, "/");
	/* init counts as a process of this user; a cgroup's limit must be reached first. */
	build_rlimits(b, d, l->pids + (d->facts->cgroup_controllers & CGROUP_PIDS ? 64 : 1),
		      l->file_size_bytes);
	add_paths(b, in);
	build_op(b, (struct op){ .kind = OP_REQUIRE, .value = d->policy->required },
		 (struct op_args){ 0 });
	build_op(b, (struct op){ .kind = OP_SECCOMP, .value = filter_of(d) },
		 (struct op_args){ 0 });
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
static bool env_is_replaced(const char *word, const char *const *later)
{
	size_t n = strcspn(word, "=");

	for (; later && *later; later++)
		if (strncmp(*later, word, n) == 0 && (*later)[n] == '=')
			return true;
	return false;
}

static void add_placed_word(struct plan_builder *b, enum op_kind kind, const char *word)
{
	_cleanup_buf_ struct buf placed = { .max = PLAN_BYTES_MAX };

	if (b->places) {
		b->r = b->r ? b->r : build_place_word(b->places, word, &placed);
		word = placed.data ? placed.data : "";
	}
	build_op(b, (struct op){ .kind = (uint16_t)kind }, (struct op_args){ .a = word });
}

/* The base environment and the words on top of it; of each variable only the last word. */
static void add_env(struct plan_builder *b, enum op_kind kind, const char *const *env,
		    const struct limits *limits)
{
	for (const char *const *e = plan_base_env; *e; e++) {
		const char *mark = strstr(*e, PLAN_CPUS);
		char word[64];

		if (env_is_replaced(*e, env))
			continue;
		if (mark)
			(void)snprintf(word, sizeof(word), "%.*s%" PRId64, (int)(mark - *e), *e,
				       plan_cpus(limits));
		add_placed_word(b, kind, mark ? word : *e);
	}
	for (const char *const *e = env; e && *e; e++)
		if (!env_is_replaced(*e, e + 1))
			add_placed_word(b, kind, *e);
}

static void add_word_ops(struct plan_builder *b, enum op_kind kind, const char *const *words)
{
	/*
	 * An empty word is a span of length 0, which op_args cannot distinguish from "use strlen". The result
	 * is the same.
	 */
	for (; words && *words; words++)
		add_placed_word(b, kind, *words);
}

static void add_bytes(struct plan_builder *b, enum op_kind kind, const struct span *bytes)
{
	if (bytes->data)
		build_op(b, (struct op){ .kind = (uint16_t)kind },
			 (struct op_args){ .a = bytes->len ? bytes->data : "",
					   .a_len = bytes->len });
}

static void add_warm(struct plan_builder *b, const struct plan_warm *warm,
		     const struct limits *limits)
{
	build_op(b, (struct op){ .kind = OP_WARM, .value = warm->kind },
		 (struct op_args){ .a = warm->name });
	if (warm->kind == WARM_FORK) {
		add_word_ops(b, OP_PRELOAD, warm->modules);
		return;
	}
	add_word_ops(b, OP_WARM_ARG, warm->argv);
	add_env(b, OP_WARM_ENV, warm->env, limits);
	if (warm->file)
		build_op(b, (struct op){ .kind = OP_WARM_FILE },
			 (struct op_args){ .a = warm->file });
}

static void add_stage(struct plan_builder *b, const struct decision *d,
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

	build_op(b, (struct op){ .kind = OP_STAGE }, (struct op_args){ .a = stage->name });
	add_word_ops(b, OP_ARG, stage->argv);
	if (d->tty && !env_is_replaced(term, stage->env))
		build_op(b, (struct op){ .kind = OP_ENV }, (struct op_args){ .a = term });
	add_env(b, OP_ENV, stage->env, l);
	add_bytes(b, OP_STDIN, &stage->stdin_data);
	for (int i = 0; i < _STAGE_LIMIT_MAX; i++) {
		if (i == STAGE_WALL_MAX_MS && limits[i] == 0)
			continue;
		build_op(b, (struct op){ .kind = OP_LIMIT, .value = i, .value2 = limits[i] },
			 (struct op_args){ 0 });
	}
}

static void build_full(struct plan_builder *b, const struct plan_input *in)
{
	add_root(b, in);
	add_devices(b, in->decision);
	add_work(b, in);
	add_file_ops(b, in);
	add_lockdown(b, in);
}

int plan_build(const struct plan_input *in, struct plan *ret, struct error *err)
{
	static void (*const prepare[])(struct plan_builder *, const struct plan_input *) = {
		[ISOLATION_FULL] = build_full,
		[ISOLATION_MINIMAL] = build_minimal,
	};
	struct plan plan;
	struct plan_builder b = { .plan = &plan };

	plan_init(&plan);
	prepare[in->decision->policy->isolation](&b, in);
	if (in->collect)
		build_op(&b,
			 (struct op){ .kind = OP_COLLECT,
				      .value = COLLECT_FILES_MAX,
				      .value2 = in->decision->limits.disk_bytes },
			 (struct op_args){ 0 });
	if (in->decision->workspace && !in->decision->read_only)
		build_op(&b, (struct op){ .kind = OP_COMMIT, .value = in->decision->commit },
			 (struct op_args){ 0 });
	/* A cell is a sandbox of namespaces. */
	if (in->warm && !b.places)
		add_warm(&b, in->warm, &in->decision->limits);
	for (size_t i = 0; i < in->n_stages; i++)
		add_stage(&b, in->decision, &in->stages[i]);
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
