/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: scope-bound closing and whole reads and writes. An empty fd variable holds
 * -EBADF. Nothing here creates an fd without O_CLOEXEC.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

/* Closes fd when it is one, keeps errno, returns -EBADF: `x->fd = fd_close(x->fd);` */
int fd_close(int fd);
static inline void fd_cleanup(int *fd)
{
	(void)fd_close(*fd);
}
#define _cleanup_close_ _cleanup_(fd_cleanup)

/* Writes all n bytes to a blocking fd. */
int fd_write_all(int fd, const void *data, size_t n) _must_check_;
int fd_set_nonblock(int fd, bool on) _must_check_;
/* A memfd that holds a copy of the bytes and can no longer be changed by anybody. */
int fd_sealed_memfd(const char *name, const void *data, size_t n) _must_check_;
/* The same for a program: it may be executed also where vm.memfd_noexec forbids it by default. */
int fd_sealed_program(const char *name, const void *data, size_t n) _must_check_;
