/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See doctor.h. Every section is a table. "ok" stands for the last line: all layers hold, so a run's
 * isolation.tier is "full". Settings only warn: the sandbox does not depend on them; they are a second line of
 * defence for the host.
 */
#include "run/doctor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys/probe.h"
#include "base/sys/textfile.h"
#include "run/toolchain/data.h"

/* WORD_UNTESTED: the check depends on one that failed, so nothing is known. */
enum verdict_word { WORD_OK, WORD_WARN, WORD_MISSING, WORD_UNTESTED, _WORD_MAX };

struct check {
	const char *name;
	enum verdict_word word;
	bool weakens; /* a warning: Atoll itself holds less */
	char value[120];
	char why[160]; /* "": the value says it */
	char fix[320]; /* "": nothing to do */
};

static int add_check(json_t *checks, const struct check *c)
{
	static const char *const words[_WORD_MAX] = {
		[WORD_OK] = "ok",
		[WORD_WARN] = "warn",
		[WORD_MISSING] = "missing",
		[WORD_UNTESTED] = "untested",
	};
	json_t *row = json_pack("{s:s, s:s, s:s, s:b, s:s?, s:s?}", "name", c->name, "value",
				c->value, "verdict", words[c->word], "weakens",
				c->weakens || c->word == WORD_MISSING, "why",
				c->why[0] ? c->why : NULL, "fix", c->fix[0] ? c->fix : NULL);

	return json_array_append_new(checks, row);
}

static void leave_untested(struct check *c)
{
	c->word = WORD_UNTESTED;
	c->weakens = false;
	c->fix[0] = '\0';
	(void)snprintf(c->value, sizeof(c->value), "not tested");
}

static json_t *add_section(json_t *sections, const char *name)
{
	json_t *checks = json_array();
	json_t *section = json_pack("{s:s, s:o}", "name", name, "checks", checks);

	return json_array_append_new(sections, section) < 0 ? NULL : checks;
}

static bool flag_at(const struct host_facts *facts, size_t offset)
{
	return *(const bool *)((const char *)facts + offset);
}

static int report_host(json_t *checks, const struct doctor_input *in)
{
	const struct host_facts *f = in->facts;
	struct check kernel = { .name = "kernel" }, cores = { .name = "cores" };
	struct check memory = { .name = "memory" }, user = { .name = "user" };

	(void)snprintf(kernel.value, sizeof(kernel.value), "%s", f->kernel);
	(void)snprintf(cores.value, sizeof(cores.value), "%d", f->cores);
	(void)snprintf(memory.value, sizeof(memory.value), "%lld MiB", f->memory_bytes / MiB);
	if (f->privileged) {
		(void)snprintf(user.value, sizeof(user.value), "root, ids %u to %u for sandboxes",
			       f->uid_base, f->uid_base + f->uid_count - 1);
	} else {
		user.word = WORD_WARN;
		user.weakens = true;
		(void)snprintf(user.value, sizeof(user.value), "rootless (uid %u)", f->uid);
		layer_fix(LAYER_UNIQUE_UID, f, user.fix, sizeof(user.fix));
	}
	return add_check(checks, &kernel) < 0 || add_check(checks, &cores) < 0 ||
			       add_check(checks, &memory) < 0 || add_check(checks, &user) < 0
		       ? -ENOMEM
		       : 0;
}

static const struct {
	const char *name;
	size_t flag;
} namespace_table[] = {
	{ "mntns", offsetof(struct host_facts, namespaces.mount) },
	{ "pidns", offsetof(struct host_facts, namespaces.pid) },
	{ "netns", offsetof(struct host_facts, namespaces.net) },
	{ "ipcns", offsetof(struct host_facts, namespaces.ipc) },
	{ "utsns", offsetof(struct host_facts, namespaces.uts) },
	{ "cgroupns", offsetof(struct host_facts, namespaces.cgroup) },
};

static int report_namespaces(json_t *checks, const struct doctor_input *in)
{
	const struct host_facts *f = in->facts;
	struct check user = { .name = "userns", .value = "yes" };

	if (!f->namespaces.user) {
		user = (struct check){ .name = "userns", .word = WORD_MISSING, .value = "no" };
		layer_fix(LAYER_USERNS, f, user.fix, sizeof(user.fix));
	}
	if (add_check(checks, &user) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(namespace_table); i++) {
		bool there = flag_at(f, namespace_table[i].flag);
		struct check c = { .name = namespace_table[i].name,
				   .word = there ? WORD_OK : WORD_MISSING };

		(void)snprintf(c.value, sizeof(c.value), "%s", there ? "yes" : "no");
		/* Without a user namespace the others could not be tried. */
		if (!there && !f->namespaces.user)
			leave_untested(&c);
		else if (!there)
			(void)snprintf(c.fix, sizeof(c.fix),
				       "boot a kernel built with all namespaces: apt-get install "
				       "linux-image-amd64");
		if (add_check(checks, &c) < 0)
			return -ENOMEM;
	}
	return 0;
}

static const char *cgroup_word(enum cgroup_kind kind)
{
	static const char *const names[_CGROUP_KIND_MAX] = {
		[CGROUP_NONE] = "none",
		[CGROUP_V1] = "v1",
		[CGROUP_V2] = "v2",
	};

	return names[kind];
}

static int report_cgroups(json_t *checks, const struct doctor_input *in)
{
	static const struct {
		const char *name;
		uint32_t bit;
		int layer; /* enum layer, or -1: only measured */
	} table[] = {
		{ "memory", CGROUP_MEMORY, LAYER_CGROUP_MEMORY },
		{ "pids", CGROUP_PIDS, LAYER_CGROUP_PIDS },
		{ "cpu", CGROUP_CPU, LAYER_CGROUP_CPU },
		{ "swap", CGROUP_SWAP, -1 },
	};
	const struct host_facts *f = in->facts;
	struct check mode = { .name = "mode" };

	(void)snprintf(mode.value, sizeof(mode.value), "%s", cgroup_word(f->cgroup));
	if (f->cgroup == CGROUP_NONE) {
		mode.word = WORD_MISSING;
		(void)snprintf(mode.fix, sizeof(mode.fix), "%s", f->cgroup_reason);
	}
	if (add_check(checks, &mode) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct check c = { .name = table[i].name };
		bool there = f->cgroup_controllers & table[i].bit;

		(void)snprintf(c.value, sizeof(c.value), "%s", there ? "yes" : "no");
		if (!there)
			c.word = table[i].layer < 0 ? WORD_WARN : WORD_MISSING;
		c.weakens = !there;
		/* If there are no cgroups at all, the row above says so. */
		if (f->cgroup == CGROUP_NONE)
			leave_untested(&c);
		else if (!there) {
			if (table[i].layer >= 0)
				layer_fix((enum layer)table[i].layer, f, c.fix, sizeof(c.fix));
			else
				(void)snprintf(c.fix, sizeof(c.fix), "%s",
					       "swap is not counted: boot with swapaccount=1, or "
					       "turn swap off (swapoff -a, and out of /etc/fstab)");
		}
		if (add_check(checks, &c) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int report_devices(json_t *checks, const struct host_facts *f)
{
	struct check c = { .name = "devices" };

	if (f->privileged) {
		(void)snprintf(c.value, sizeof(c.value), "nodes of each sandbox's own");
	} else {
		c.word = WORD_WARN;
		c.weakens = true;
		(void)snprintf(
			c.value, sizeof(c.value),
			"rootless: /dev/null and its like are the host's own nodes, read-only");
		(void)snprintf(c.fix, sizeof(c.fix),
			       "run atoll as root, which makes nodes for each sandbox");
	}
	return add_check(checks, &c) < 0 ? -ENOMEM : 0;
}

/* These mounts are tried inside a user namespace. */
static bool is_untested(const struct host_facts *facts, enum layer layer)
{
	return !facts->namespaces.user && (layer == LAYER_OVERLAY || layer == LAYER_PROC);
}

static int report_confinement(json_t *checks, const struct doctor_input *in)
{
	const struct host_facts *f = in->facts;
	const struct {
		const char *name;
		bool there;
		enum layer layer;
	} table[] = {
		{ "seccomp", f->seccomp, LAYER_SECCOMP },
		{ "landlock", f->landlock_abi > 0, LAYER_LANDLOCK },
		{ "overlay", f->overlay, LAYER_OVERLAY },
		{ "proc", f->proc_mount, LAYER_PROC },
		{ "broker", !f->broker_open, LAYER_BROKER },
		{ "front", f->front == FRONT_CALLER || f->front == FRONT_CONFINED, LAYER_FRONT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct check c = { .name = table[i].name };

		if (table[i].there && table[i].layer == LAYER_LANDLOCK)
			(void)snprintf(c.value, sizeof(c.value), "ABI %d", f->landlock_abi);
		else if (table[i].layer == LAYER_FRONT && f->front == FRONT_CALLER)
			(void)snprintf(c.value, sizeof(c.value), "yes, in the daemon");
		else
			(void)snprintf(c.value, sizeof(c.value), "%s",
				       table[i].there ? "yes" : "no");
		if (!table[i].there && is_untested(f, table[i].layer)) {
			leave_untested(&c);
		} else if (!table[i].there) {
			c.word = WORD_MISSING;
			layer_fix(table[i].layer, f, c.fix, sizeof(c.fix));
		}
		if (add_check(checks, &c) < 0)
			return -ENOMEM;
	}
	return report_devices(checks, f);
}

/* Calls that have a slower replacement; without them nothing is lost. */
static int report_calls(json_t *checks, const struct doctor_input *in)
{
	static const struct {
		const char *name;
		size_t flag;
	} table[] = {
		{ "clone3", offsetof(struct host_facts, calls.clone3) },
		{ "openat2", offsetof(struct host_facts, calls.openat2) },
		{ "pidfd", offsetof(struct host_facts, calls.pidfd) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		bool there = flag_at(in->facts, table[i].flag);
		struct check c = { .name = table[i].name, .word = there ? WORD_OK : WORD_WARN };

		(void)snprintf(c.value, sizeof(c.value), "%s", there ? "yes" : "no");
		if (!there)
			(void)snprintf(
				c.fix, sizeof(c.fix), "%s",
				"an outer seccomp filter or an old kernel hides it: run outside "
				"the container, or apt-get install linux-image-amd64");
		if (add_check(checks, &c) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Settings of the host, each with its good values. */
struct sysctl_setting {
	const char *name; /* as sysctl writes it */
	const char *path; /* below /proc/sys/ */
	int64_t low, high;
	int64_t advice;
	bool rootless_only;
	const char *why;
};

static const struct sysctl_setting settings[] = {
	{ "kernel.unprivileged_userns_clone", "kernel/unprivileged_userns_clone", 1, 1, 1, true,
	  "rootless sandboxes need user namespaces" },
	{ "kernel.apparmor_restrict_unprivileged_userns",
	  "kernel/apparmor_restrict_unprivileged_userns", 0, 0, 0, true,
	  "rootless sandboxes need user namespaces" },
	{ "user.max_user_namespaces", "user/max_user_namespaces", 1000, INT64_MAX, 15000, false,
	  "one is used by every sandbox that runs" },
	{ "kernel.yama.ptrace_scope", "kernel/yama/ptrace_scope", 1, 3, 1, false,
	  "processes of one user could trace each other" },
	{ "dev.tty.legacy_tiocsti", "dev/tty/legacy_tiocsti", 0, 0, 0, false,
	  "a program could type into the terminal it shares" },
	{ "kernel.io_uring_disabled", "kernel/io_uring_disabled", 1, 2, 2, false,
	  "io_uring has been a way out of many sandboxes; Atoll's filter refuses it" },
	{ "kernel.unprivileged_bpf_disabled", "kernel/unprivileged_bpf_disabled", 1, 2, 1, false,
	  "bpf() widens what a kernel bug can do; Atoll's filter refuses it" },
	{ "kernel.perf_event_paranoid", "kernel/perf_event_paranoid", 2, 4, 2, false,
	  "perf shows one user what another does" },
	{ "vm.unprivileged_userfaultfd", "vm/unprivileged_userfaultfd", 0, 0, 0, false,
	  "userfaultfd makes kernel races easy to win; Atoll's filter refuses it" },
	{ "debug.exception-trace", "debug/exception-trace", 0, 0, 0, false,
	  "a program that crashes writes its name, which may be any text, into the kernel's log" },
	{ "fs.protected_symlinks", "fs/protected_symlinks", 1, 1, 1, false,
	  "links planted in /tmp would be followed" },
	{ "fs.protected_hardlinks", "fs/protected_hardlinks", 1, 1, 1, false,
	  "users could link files that they cannot write" },
	{ "fs.protected_regular", "fs/protected_regular", 1, 2, 2, false,
	  "files planted in /tmp would be opened" },
	{ "fs.protected_fifos", "fs/protected_fifos", 1, 2, 2, false,
	  "pipes planted in /tmp would be opened" },
	{ "vm.overcommit_memory", "vm/overcommit_memory", 0, 1, 0, false,
	  "Go, Java and JavaScript reserve more memory than they use" },
};

static int report_settings(json_t *checks, const struct doctor_input *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct sysctl_setting *s = &settings[i];
		struct check c = { .name = s->name };
		int64_t value;
		int r = in->read_setting(s->path, &value);

		if (r < 0) { /* unknown to this kernel, so it has no effect */
			(void)snprintf(c.value, sizeof(c.value), "not on this kernel");
		} else {
			(void)snprintf(c.value, sizeof(c.value), "%" PRId64, value);
			if ((value < s->low || value > s->high) &&
			    !(s->rootless_only && in->facts->privileged)) {
				c.word = WORD_WARN;
				(void)snprintf(c.why, sizeof(c.why), "%s", s->why);
				(void)snprintf(c.fix, sizeof(c.fix),
					       in->facts->uid == 0
						       ? SYSCTL_FIX("", "%s=%" PRId64)
						       : SYSCTL_FIX("sudo ", "%s=%" PRId64),
					       s->name, s->advice);
			}
		}
		if (add_check(checks, &c) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int report_languages(json_t *checks, const struct doctor_input *in)
{
	json_t *language;
	size_t i;

	json_array_foreach(in->languages, i, language)
	{
		const char *name = json_string_value(json_object_get(language, "name"));
		const char *version = json_string_value(json_object_get(language, "version"));
		const char *package = json_string_value(json_object_get(language, "package"));
		bool there = json_is_true(json_object_get(language, "available"));
		struct check c = { .name = name ? name : "?", .word = there ? WORD_OK : WORD_WARN };

		(void)snprintf(c.value, sizeof(c.value), "%s",
			       !there	 ? "not installed"
			       : version ? version
					 : "installed");
		if (!there && package)
			(void)snprintf(c.fix, sizeof(c.fix), "apt-get install %s", package);
		if (add_check(checks, &c) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool namespaces_complete(const struct host_facts *facts)
{
	for (size_t i = 0; i < ARRAY_SIZE(namespace_table); i++)
		if (!flag_at(facts, namespace_table[i].flag))
			return false;
	return true;
}

static json_t *missing_list(uint32_t missing)
{
	json_t *list = json_array();

	for (int l = 0; l < _LAYER_MAX; l++)
		if (missing & 1u << l &&
		    json_array_append_new(list, json_string(layer_name((enum layer)l))) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* The layer whose fix is named: one that refuses runs comes before one that only weakens them. */
static enum layer first_layer(uint32_t missing, uint32_t required)
{
	uint32_t bits = missing & required ? missing & required : missing;

	return (enum layer)__builtin_ctz(bits);
}

static int summarise(json_t *report, const struct doctor_input *in)
{
	uint32_t missing = layers_missing(in->facts);
	bool ok = !missing && namespaces_complete(in->facts);
	char names[200] = "", text[640], fix[320] = "";

	for (int l = 0; l < _LAYER_MAX; l++) {
		size_t n = strlen(names);

		if (missing & 1u << l && !is_untested(in->facts, (enum layer)l))
			(void)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
				       layer_name((enum layer)l));
	}
	if (missing)
		layer_fix(first_layer(missing, in->policy->required), in->facts, fix, sizeof(fix));
	else if (!ok)
		(void)snprintf(fix, sizeof(fix), "%s",
			       "this kernel lacks a kind of namespace: apt-get install "
			       "linux-image-amd64");
	if (ok)
		(void)snprintf(text, sizeof(text), "%s",
			       "This host can enforce the default policy in full.");
	else
		(void)snprintf(text, sizeof(text), "This host cannot %s. Missing: %s; %s",
			       missing & in->policy->required
				       ? "run the default policy"
				       : "enforce the default policy in full",
			       missing ? names : "namespaces", fix);
	return json_object_set_new(report, "ok", json_boolean(ok)) < 0 ||
			       json_object_set_new(report, "summary", json_string(text)) < 0 ||
			       json_object_set_new(report, "fix",
						   fix[0] ? json_string(fix) : json_null()) < 0 ||
			       json_object_set_new(report, "missing", missing_list(missing)) < 0
		       ? -ENOMEM
		       : 0;
}

json_t *doctor_report(const struct doctor_input *in)
{
	static const struct {
		const char *name;
		int (*fill)(json_t *checks, const struct doctor_input *in);
	} table[] = {
		{ "Host", report_host },
		{ "Namespaces", report_namespaces },
		{ "Limits (cgroups)", report_cgroups },
		{ "Confinement", report_confinement },
		{ "System calls", report_calls },
		{ "Settings", report_settings },
		{ "Languages", report_languages },
	};
	json_t *report = json_object(), *sections = json_array();
	int r = summarise(report, in);

	if (r == 0 &&
	    (json_object_set_new(report, "cgroup", json_string(cgroup_word(in->facts->cgroup))) <
		     0 ||
	     json_object_set_new(report, "landlock", json_integer(in->facts->landlock_abi)) < 0 ||
	     json_object_set_new(report, "rootless", json_boolean(!in->facts->privileged)) < 0))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(table); i++) {
		json_t *checks = add_section(sections, table[i].name);

		r = checks ? table[i].fill(checks, in) : -ENOMEM;
	}
	/* Takes over sections also on failure. */
	if (json_object_set_new(report, "sections", sections) < 0 || r < 0) {
		json_decref(report);
		return NULL;
	}
	return report;
}

int doctor_add_history(json_t *report, int64_t damaged)
{
	struct check c = {
		.name = "history",
		.word = WORD_WARN,
		.why = "a daemon found its history damaged and put it aside: those executions are "
		       "not "
		       "listed",
		.fix = "atoll history repair",
	};
	json_t *checks = damaged > 0 ? add_section(json_object_get(report, "sections"), "History")
				     : NULL;

	(void)snprintf(c.value, sizeof(c.value), "%" PRId64 " damaged, not repaired", damaged);
	return damaged <= 0 ? 0 : checks ? add_check(checks, &c) : -ENOMEM;
}

static int read_setting(const char *path, int64_t *ret)
{
	char full[128], text[32];
	int r;

	(void)snprintf(full, sizeof(full), "/proc/sys/%s", path);
	r = textfile_read_i64_at(AT_FDCWD, full, ret);
	if (r != -EINVAL)
		return r;
	/* perf_event_paranoid may be -1, which is below every bound. */
	r = textfile_read_at(AT_FDCWD, full, text, sizeof(text));
	if (r < 0)
		return r;
	if (text[0] != '-')
		return -EINVAL;
	*ret = -1;
	return 0;
}

int doctor_examine(struct registry *reg, const struct prober *p, const struct host_facts *known,
		   json_t **ret, struct error *err)
{
	static const char file[] = "policies/default.yaml";
	_cleanup_buf_ struct buf text = { 0 };
	struct host_facts facts;
	struct policy *policy = NULL;
	json_t *languages = NULL;
	int r;

	buf_init(&text, DATA_FILE_MAX);
	r = data_read(p->data_dir, file, &text, err);
	if (r == -ENOENT)
		return error_set(err, ERROR_INTERNAL, ENOENT,
				 "%s/%s is missing; set ATOLL_DATA_DIR to where Atoll's files are.",
				 p->data_dir, file);
	if (r < 0)
		return r;
	if (known)
		facts = *known;
	else
		host_probe_deep(&facts);
	r = policy_parse(&(struct document){ file, text.data, text.len }, &facts, &policy, err);
	if (r < 0)
		return r;
	r = registry_to_json(reg, p, &languages, err);
	if (r == 0) {
		struct doctor_input in = { .facts = &facts,
					   .policy = policy,
					   .languages = json_object_get(languages, "languages"),
					   .read_setting = read_setting };

		*ret = doctor_report(&in);
		if (!*ret)
			r = error_set(err, ERROR_INTERNAL, ENOMEM, "Out of memory.");
	}
	json_decref(languages);
	(void)policy_free(policy);
	return r;
}
