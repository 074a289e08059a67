/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enosys RULE... -- COMMAND...: runs COMMAND where some system calls do not exist.
 *
 * RULE is NAME or NAME=ERRNO. NAME is a system call of the table below, or `clone-new`: clone with any
 * namespace flag. The default errno is ENOSYS. A real seccomp filter, as container engines install one,
 * so what is tested is the product's way on such a host and not a switch of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEW_FLAGS 0x7e020080u /* every CLONE_NEW*, NEWTIME included */

static const struct {
	const char *name;
	unsigned int nr;
} calls[] = {
	{ "clone3", 435 },
	{ "openat2", 437 },
	{ "landlock_create_ruleset", 444 },
	{ "landlock_add_rule", 445 },
	{ "landlock_restrict_self", 446 },
	{ "unshare", 272 },
	{ "mount", 165 },
	{ "fsopen", 430 },
	{ "open_tree", 428 },
	{ "mount_setattr", 442 },
	{ "pivot_root", 155 },
	{ "seccomp", 317 },
	{ "pidfd_open", 434 },
	{ "close_range", 436 },
	{ "memfd_create", 319 },
	{ "flock", 73 },
	{ "clone-new", 56 },
};

static const struct {
	const char *name;
	unsigned int value;
} errors[] = { { "ENOSYS", ENOSYS }, { "EPERM", EPERM },   { "ENOSPC", ENOSPC },
	       { "EINVAL", EINVAL }, { "ENOMEM", ENOMEM }, { "ENOLCK", ENOLCK } };

static int add_rule(const char *word, struct sock_filter *out)
{
	size_t len = strcspn(word, "=");
	unsigned int error = ENOSYS;
	int n = 0;

	if (word[len] == '=') {
		size_t i = 0;

		while (i < sizeof(errors) / sizeof(errors[0]) &&
		       strcmp(errors[i].name, word + len + 1) != 0)
			i++;
		if (i == sizeof(errors) / sizeof(errors[0]))
			return -1;
		error = errors[i].value;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strlen(calls[i].name) != len || strncmp(calls[i].name, word, len) != 0)
			continue;
		int by_flags = strcmp(calls[i].name, "clone-new") == 0;

		out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							offsetof(struct seccomp_data, nr));
		out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].nr, 0,
							by_flags ? 3 : 1);
		if (by_flags) {
			out[n++] = (struct sock_filter)BPF_STMT(
				BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
			out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
								NEW_FLAGS, 0, 1);
		}
		out[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
		return n;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct sock_filter insns[256];
	struct sock_fprog program = { .filter = insns };
	int n = 0, i = 1;

	insns[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, arch));
	insns[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1,
						  0);
	insns[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		int added = n < 240 ? add_rule(argv[i], insns + n) : -1;

		if (added < 0) {
			fprintf(stderr, "enosys: unknown rule %s\n", argv[i]);
			return 2;
		}
		n += added;
	}
	insns[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: enosys RULE... -- COMMAND...\n");
		return 2;
	}
	/* Without no_new_privs when that is allowed: the product must set it by itself. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)) {
		perror("enosys: seccomp");
		return 2;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}
