/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: scope-bound closing and whole reads and writes. An empty fd variable holds
 * -EBADF. Nothing here creates an fd without O_CLOEXEC.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

/* Closes fd unless it is negative, keeps errno, returns -EBADF: `x->fd = fd_close(x->fd);` */
int fd_close(int fd);
static inline void fd_cleanup(int *fd)
{
	(void)fd_close(*fd);
}
#define _cleanup_close_ _cleanup_(fd_cleanup)

/* Writes all n bytes to a blocking fd. */
int fd_write_all(int fd, const void *data, size_t n) _must_check_;
int fd_set_nonblock(int fd, bool on) _must_check_;
/* A read-only descriptor of the same file with an offset of its own; it works too when the name is gone. */
int fd_open_again(int fd) _must_check_;
/* A sealed memfd with a copy of the bytes: its content cannot change. */
int fd_sealed_memfd(const char *name, const void *data, size_t n) _must_check_;
/* The same for a program: the memfd may be executed even if vm.memfd_noexec forbids that by default. */
int fd_sealed_program(const char *name, const void *data, size_t n) _must_check_;
