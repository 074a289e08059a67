/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter's policy as data, shared by table, compiler and listing. Everything is a switch: the program
 * switches on the system call number, a checked call switches on an argument. A switch leads to a target: an
 * answer, or another switch. Only the low 32 bits of an argument are compared, because the kernel uses only
 * those of the arguments checked here.
 */
#pragma once

#include "plan/filter.h"

enum machine { MACHINE_X86_64, MACHINE_AARCH64, _MACHINE_MAX };

/* Jumps only go forward, so a switch may lead only to targets listed before it. */
enum target {
	TO_ENOSYS,
	TO_ALLOW,
	TO_EPERM,
	TO_EINVAL,
	TO_EAFNOSUPPORT,
	TO_ENOPROTOOPT,
	TO_EOPNOTSUPP,
	TO_OK,	   /* the call does nothing and returns 0 */
	TO_TRACER, /* only a tracer can have it made; otherwise ENOSYS */
	TO_KILL,
	_TO_ANSWER_MAX,
	TO_STREAM_PROTOCOL = _TO_ANSWER_MAX,
	TO_DGRAM_PROTOCOL,
	TO_SOCKET_TYPE,
	TO_SOCKET_PROTOCOL,
	TO_SOCKET,
	TO_INET_SOCKET, /* only in filters of Atoll's own processes (box/confine/) */
	TO_SOCKETPAIR,
	TO_PAIR_TYPE,
	TO_PAIR,
	TO_IPV4_OPTION,
	TO_IPV6_OPTION,
	TO_TCP_OPTION,
	TO_SOCKET_OPTION,
	TO_SOCKOPT,
	TO_MESSAGE_FLAGS_2,
	TO_MESSAGE_FLAGS_3,
	TO_PIPE_SIZE,
	TO_FCNTL,
	TO_APART_FCNTL,
	TO_MADVISE,
	TO_MEMBARRIER,
	TO_MEMFD_CREATE,
	TO_MMAP,
	TO_PRLIMIT,
	TO_OTHER_PROCESS,
	TO_PRIORITY_WHO,
	TO_PRIORITY,
	TO_OWN_PRIORITY,
	TO_PERSONALITY,
	TO_PRCTL,
	TO_CLONE,
	TO_THREAD, /* only in filters of Atoll's own processes (box/confine/) */
	TO_SOCKET_IOCTL,
	TO_IOCTL,
	TO_APART_IOCTL,
	_TO_MAX,
};

enum {
	NR_NONE = -1,	/* this machine lacks the call */
	NR_KNOWN = 512, /* every number in the table is below this */
	SWITCH_CASES_MAX = 9,
};

/* Numbers from here on belong to the x32 ABI on x86-64, and to no ABI elsewhere. */
#define NR_FOREIGN UINT32_C(0x40000000)

struct syscall_row {
	char name[24]; /* in place: no relocation at program start */
	int16_t nr[_MACHINE_MAX];
	uint8_t to;
};

/* A row whose verdict differs in this profile and all after it; of a call with several rows the first that applies counts. */
struct filter_override {
	uint8_t profile;
	char name[24];
	uint8_t to;
};

struct switch_case {
	uint32_t first, last;
	uint8_t to;
};

struct arg_switch {
	uint32_t mask;
	uint8_t arg;
	uint8_t otherwise;
	uint8_t n_cases;
	struct switch_case cases[SWITCH_CASES_MAX]; /* ascending */
};

/* Both end with a row whose name is empty. A number without a row leads to TO_ENOSYS. */
extern const struct syscall_row filter_syscalls[];
extern const struct filter_override filter_overrides[];
extern const struct arg_switch filter_switches[_TO_MAX];
extern const uint32_t filter_answers[_TO_ANSWER_MAX]; /* SECCOMP_RET_* */
extern const uint32_t filter_arches[_MACHINE_MAX];    /* AUDIT_ARCH_* */

/* The target of a row in a profile. */
enum target filter_target(enum filter_profile profile, const struct syscall_row *row);

/*
 * A program from the target of each number, for filters with their own rows (box/confine/). Overwrites the array.
 */
int filter_compile_numbers(uint8_t to_of[NR_KNOWN], enum machine machine,
			   struct filter *ret) _must_check_;
/* As filter_build() and filter_lookup(), for any machine. */
int filter_compile(enum filter_profile profile, enum machine machine,
		   struct filter *ret) _must_check_;
uint32_t filter_evaluate(enum filter_profile profile, enum machine machine, uint32_t arch,
			 uint32_t nr, const uint64_t args[6]);

enum machine filter_native(void);
/* "allow", "EPERM", …; NULL for a target that is a switch. */
const char *filter_answer_name(enum target to);
