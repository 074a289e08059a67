/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See probe.h. Calls that take pointers are tested with arguments that cannot succeed: an error other than
 * ENOSYS proves that the kernel, and any outer filter, knows the call.
 */
#include "base/sys/probe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/sys/cgroup-paths.h"
#include "base/sys/kernel.h"
#include "base/sys/textfile.h"

enum {
	UID_COUNT_MIN = 1024,
	UID_NOBODY = 65534,
};

struct id_map {
	int64_t inside, count;
};

/* Next line "inside outside count" of a uid_map; false at the end. */
static bool next_map(const char **text, struct id_map *ret)
{
	int64_t numbers[3] = { 0 };
	const char *p = *text;

	for (int i = 0; i < 3; i++) {
		p += strspn(p, " \t\n");
		if (*p < '0' || *p > '9')
			return false;
		for (; *p >= '0' && *p <= '9'; p++)
			if (numbers[i] <= UINT32_MAX)
				numbers[i] = numbers[i] * 10 + (*p - '0');
	}
	*text = p;
	*ret = (struct id_map){ .inside = numbers[0], .count = numbers[2] };
	return true;
}

bool probe_id_covered(const char *map_text, uint32_t base, uint32_t count)
{
	struct id_map m;

	while (next_map(&map_text, &m))
		if (base >= m.inside && (int64_t)base + count <= m.inside + m.count)
			return true;
	return false;
}

bool probe_id_range(const char *map_text, uint32_t *ret_base, uint32_t *ret_count)
{
	struct id_map m, largest = { 0 };
	int64_t base, end;

	if (probe_id_covered(map_text, PROBE_UID_BASE, PROBE_UID_COUNT)) {
		*ret_base = PROBE_UID_BASE;
		*ret_count = PROBE_UID_COUNT;
		return true;
	}
	while (next_map(&map_text, &m))
		if (m.count > largest.count)
			largest = m;
	base = largest.inside + largest.count / 2;
	end = MIN(largest.inside + largest.count, base + PROBE_UID_COUNT);
	if (base <= UID_NOBODY && end > UID_NOBODY)
		end = UID_NOBODY;
	if (end - base < UID_COUNT_MIN || base <= 0 || end > UINT32_MAX)
		return false;
	*ret_base = (uint32_t)base;
	*ret_count = (uint32_t)(end - base);
	return true;
}

bool probe_proc_masked(const char *mountinfo_text)
{
	/* Directories that the kernel made as mount points; a mount there hides nothing. */
	static const char *const harmless[] = { "/proc/sys/fs/binfmt_misc ", "/proc/fs/nfsd ",
						"/proc/xen ", "/proc/openprom " };
	const char *p = mountinfo_text;

	while ((p = strstr(p, " /proc/"))) {
		bool hides = true;

		p++;
		for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
			if (strncmp(p, harmless[i], strlen(harmless[i])) == 0)
				hides = false;
		if (hides)
			return true;
	}
	return false;
}

bool probe_kernel_at_least(const char *release, int major, int minor)
{
	int have[2] = { 0, 0 };

	for (int i = 0; i < 2; i++) {
		while (*release >= '0' && *release <= '9' && have[i] < 10000)
			have[i] = have[i] * 10 + (*release++ - '0');
		if (*release == '.')
			release++;
	}
	return have[0] > major || (have[0] == major && have[1] >= minor);
}

static void off_cgroup(struct host_facts *facts)
{
	facts->cgroup = CGROUP_NONE;
	facts->cgroup_controllers = 0;
	(void)snprintf(facts->cgroup_reason, sizeof(facts->cgroup_reason), "%s",
		       "cgroups are switched off by ATOLL_FORCE_OFF: unset ATOLL_FORCE_OFF");
}

static void off_userns(struct host_facts *facts)
{
	facts->namespaces.user = false;
	(void)snprintf(
		facts->userns_reason, sizeof(facts->userns_reason), "%s",
		"user namespaces are switched off by ATOLL_FORCE_OFF: unset ATOLL_FORCE_OFF");
}

static void off_landlock(struct host_facts *facts)
{
	facts->landlock_abi = 0;
}

static const struct {
	const char *name;
	size_t flag;			    /* offset of the bool to clear, or… */
	void (*clear)(struct host_facts *); /* …the function that removes the feature */
} force_table[] = {
	{ "landlock", 0, off_landlock },
	{ "cgroup", 0, off_cgroup },
	{ "userns", 0, off_userns },
	{ "overlay", offsetof(struct host_facts, overlay), NULL },
	{ "proc", offsetof(struct host_facts, proc_mount), NULL },
	{ "seccomp", offsetof(struct host_facts, seccomp), NULL },
	{ "clone3", offsetof(struct host_facts, calls.clone3), NULL },
	{ "openat2", offsetof(struct host_facts, calls.openat2), NULL },
	{ "pidfd", offsetof(struct host_facts, calls.pidfd), NULL },
};

void probe_force_off(struct host_facts *facts, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		for (size_t i = 0; i < ARRAY_SIZE(force_table); i++) {
			if (strlen(force_table[i].name) != n ||
			    memcmp(force_table[i].name, list, n) != 0)
				continue;
			if (force_table[i].clear)
				force_table[i].clear(facts);
			else
				*(bool *)((char *)facts + force_table[i].flag) = false;
		}
		list += n;
		list += *list == ',';
	}
}

static void probe_host(struct host_facts *ret)
{
	struct utsname names;
	struct sysinfo info;
	cpu_set_t cpus;

	if (uname(&names) == 0) {
		(void)snprintf(ret->kernel, sizeof(ret->kernel), "%s", names.release);
		(void)snprintf(ret->node, sizeof(ret->node), "%s", names.nodename);
	}
	ret->cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
	if (sysinfo(&info) == 0)
		ret->memory_bytes = (int64_t)info.totalram * info.mem_unit;
	ret->uid = geteuid();
	ret->gid = getegid();
}

static bool has_caps(const int *needed, size_t n)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!(data[CAP_TO_INDEX(needed[i])].effective & CAP_TO_MASK(needed[i])))
			return false;
	return true;
}

static void probe_privilege(struct host_facts *ret)
{
	/* The last one ends processes of other users. */
	static const int for_users[] = { CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL };
	/* The second one opens /proc/PID/ns of a child, for workspaces, and traces copies of sessions. */
	static const int for_namespaces[] = { CAP_SYS_ADMIN, CAP_SYS_PTRACE };
	/* To give up the bounding set, and to look into a program's directories. */
	static const int for_places[] = { CAP_SETPCAP, CAP_DAC_OVERRIDE };
	char users[4096], groups[4096];
	uint32_t base, count;

	if (ret->uid != 0 || !has_caps(for_users, ARRAY_SIZE(for_users)))
		return;
	if (textfile_read_at(AT_FDCWD, "/proc/self/uid_map", users, sizeof(users)) < 0 ||
	    textfile_read_at(AT_FDCWD, "/proc/self/gid_map", groups, sizeof(groups)) < 0)
		return;
	if (!probe_id_range(users, &base, &count) || !probe_id_covered(groups, base, count))
		return;
	ret->privileged = has_caps(for_namespaces, ARRAY_SIZE(for_namespaces));
	ret->placing = has_caps(for_places, ARRAY_SIZE(for_places));
	ret->uid_base = base;
	ret->uid_count = count;
}

/* Every kernel since 4.6 has all of them unless it was built without; host_probe_deep() tries. */
static void probe_namespaces(struct host_facts *ret)
{
	bool there = probe_kernel_at_least(ret->kernel, 4, 6);

	ret->namespaces = (struct host_namespaces){ .user = there,
						    .pid = there,
						    .net = there,
						    .mount = there,
						    .ipc = there,
						    .uts = there,
						    .cgroup = there };
}

/* Switches of distributions that forbid user namespaces, and the command for each. */
static void probe_userns(struct host_facts *ret)
{
	static const struct {
		const char *path;
		int64_t closed; /* the value that forbids them */
		const char *reason;
	} table[] = {
		{ "/proc/sys/user/max_user_namespaces", 0,
		  "user namespaces are limited to none: " SYSCTL_FIX(
			  "sudo ", "user.max_user_namespaces=15000") },
		{ "/proc/sys/kernel/unprivileged_userns_clone", 0,
		  "user namespaces need root here: " SYSCTL_FIX(
			  "sudo ", "kernel.unprivileged_userns_clone=1") },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
		  "AppArmor restricts user namespaces: " SYSCTL_FIX(
			  "sudo ", "kernel.apparmor_restrict_unprivileged_userns=0") },
	};

	if (!ret->namespaces.user)
		(void)snprintf(ret->userns_reason, sizeof(ret->userns_reason), "%s",
			       "this kernel has no user namespaces: boot one built with "
			       "CONFIG_USER_NS=y");
	/* As root, clone itself would fail, so the files need not be read. */
	for (size_t i = 0; ret->namespaces.user && !ret->privileged && i < ARRAY_SIZE(table); i++) {
		int64_t value;

		if (textfile_read_i64_at(AT_FDCWD, table[i].path, &value) < 0 ||
		    value != table[i].closed)
			continue;
		ret->namespaces.user = false;
		(void)snprintf(ret->userns_reason, sizeof(ret->userns_reason), "%s",
			       table[i].reason);
	}
}

/*
 * clone() gives the errors of a used-up number of namespaces by name. EPERM has three causes: a filter of a container
 * engine, a root directory that chroot() set (the kernel checks that the caller sees its whole mount namespace), or a
 * security module.
 */
void probe_userns_refusal(const struct host_facts *facts, int errnum, char *ret, size_t size)
{
	if (errnum == ENOSPC || errnum == EUSERS)
		(void)snprintf(ret, size, "%s",
			       "no more of them may be made (in a container: change it on the "
			       "host): " SYSCTL_FIX("sudo ", "user.max_user_namespaces=15000"));
	else if (facts->filtered)
		(void)snprintf(
			ret, size, "%s",
			"the seccomp filter of this container refuses them" PROBE_UNFILTERED);
	else if (facts->uid == 0)
		(void)snprintf(ret, size, "%s",
			       "the kernel refuses them in a chroot: enter the directory by "
			       "pivot_root or systemd-nspawn instead (doc/install.md)");
	else
		(void)snprintf(ret, size, "the kernel refuses them (%s): %s", strerror(errnum),
			       "run atoll outside of the chroot or container (doc/install.md)");
}

static void probe_calls(struct host_facts *ret)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	/* An argument that no kernel accepts: a kernel that knows the call gives EINVAL. */
	ret->calls.pidfd = syscall(SYS_pidfd_open, -1, ~0U) < 0 && errno == EINVAL;
	ret->calls.clone3 = syscall(SYS_clone3, NULL, 0) < 0 && errno != ENOSYS && errno != EPERM;
	ret->calls.openat2 = syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0) < 0 && errno != ENOSYS &&
			     errno != EPERM;
	ret->seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
	ret->filtered = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
	ret->landlock_abi = MAX(0, sys_landlock_abi());
}

/* Reads the table of mounts; only if the cgroups' directories cannot be guessed. */
static int probe_mount_table(struct host_facts *ret, const char *groups, struct cgroup_site *site)
{
	_cleanup_buf_ struct buf mounts = { 0 };
	int r;

	buf_init(&mounts, MiB);
	r = textfile_read_buf("/proc/self/mountinfo", &mounts);
	if (r < 0)
		return r;
	ret->proc_mount &= !probe_proc_masked(mounts.data);
	cgroup_paths_parse(groups, mounts.data, &site->paths);
	return 0;
}

static void probe_mounts(struct host_facts *ret, struct cgroup_site *site)
{
	char groups[8192];
	int r;

	/*
	 * The first version that mounts overlay in a user namespace. A kernel without overlay fails when it is
	 * mounted.
	 */
	ret->overlay = probe_kernel_at_least(ret->kernel, 5, 11);
	/* subset=pid came with 5.8. If part of /proc is hidden here, mounting fails. */
	ret->proc_mount = probe_kernel_at_least(ret->kernel, 5, 8);
	r = textfile_read_at(AT_FDCWD, "/proc/self/cgroup", groups, sizeof(groups));
	if (r >= 0 && !cgroup_paths_guess(groups, &site->paths))
		r = probe_mount_table(ret, groups, site);
	if (r < 0) {
		(void)snprintf(ret->cgroup_reason, sizeof(ret->cgroup_reason), "%s",
			       "/proc/self cannot be read: mount -t proc proc /proc");
		return;
	}
	cgroup_home_find(&site->paths, &site->home);
	ret->cgroup = site->home.kind;
	ret->cgroup_controllers = site->home.controllers;
	(void)snprintf(ret->cgroup_reason, sizeof(ret->cgroup_reason), "%s", site->home.reason);
}

void host_probe(struct host_facts *ret)
{
	struct cgroup_site site;

	host_probe_site(ret, &site);
}

void host_probe_site(struct host_facts *ret, struct cgroup_site *ret_site)
{
	const char *off = getenv("ATOLL_FORCE_OFF");

	*ret = (struct host_facts){ 0 };
	ret_site->home = (struct cgroup_home){ .kind = CGROUP_NONE };
	probe_host(ret);
	probe_privilege(ret);
	probe_namespaces(ret);
	probe_userns(ret);
	probe_calls(ret);
	probe_mounts(ret, ret_site);
	if (off)
		probe_force_off(ret, off);
	ret->broker_open = !ret->seccomp;
}
