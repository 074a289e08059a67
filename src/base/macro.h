/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few macros every file may use: attributes, sizes, scope-bound ownership.
 *
 * Ownership: a local that owns something is declared with a _cleanup_ attribute and starts out
 * empty (NULL, -EBADF). Success moves the value out with TAKE_PTR / TAKE_FD, so every early return
 * releases exactly what is still owned.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _must_check_	   __attribute__((warn_unused_result))
#define _printf_(fmt, arg) __attribute__((format(printf, fmt, arg)))
#define _cleanup_(fn)	   __attribute__((cleanup(fn)))
#define _unused_	   __attribute__((unused))
#define _noreturn_	   __attribute__((noreturn))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

#define KiB (1024LL)
#define MiB (1024LL * KiB)
#define GiB (1024LL * MiB)

#define MS_PER_SEC 1000LL
#define US_PER_MS  1000LL
#define NS_PER_MS  1000000LL
#define NS_PER_SEC 1000000000LL

/* Moves a pointer out of a variable, leaving NULL behind. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		typeof(p) _taken = (p);                                                            \
		(p) = NULL;                                                                        \
		_taken;                                                                            \
	})

/* Moves a file descriptor out of a variable, leaving -EBADF behind. */
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int _taken_fd = (fd);                                                              \
		(fd) = -EBADF;                                                                     \
		_taken_fd;                                                                         \
	})

static inline void free_cleanup(void *p)
{
	free(*(void **)p);
}
#define _cleanup_free_ _cleanup_(free_cleanup)
