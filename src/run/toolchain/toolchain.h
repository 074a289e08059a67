/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs behind a language. They are looked up in the sandbox's root (an image directory or the host's
 * /), with symbolic links followed inside that root, and never by PATH. The version comes from running the
 * runtime in a sandbox, once: the answer is cached by the identity of the file.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "spec/language.h"

#include <jansson.h>

/* Identifies a file of the sandbox's root, to tell one toolchain from another. */
struct tool_id {
	int64_t size;
	int64_t mtime_ns;
	uint64_t inode, device;
};
struct stat;
void tool_id_of(const struct stat *st, struct tool_id *ret);
/* image NULL: the host's root. -ENOENT: no such file; -ELOOP and so on as open(2). */
int tool_identify(const char *image, const char *path, struct tool_id *ret) _must_check_;

/* 0, or -ENOPKG (ERROR_RUNTIME) with a sentence that names the missing file and the package to install. */
int language_available(const struct language *lang, const char *image,
		       struct error *err) _must_check_;

/*
 * How to run a request that prints a version; the run flow provides it. `request` is a request body; the output
 * of both streams goes to out. The run must not ask for versions itself.
 */
struct prober {
	int (*run)(void *data, const json_t *request, struct buf *out);
	void *data;
	const char *image;    /* or NULL */
	const char *data_dir; /* for runners/<lang>/libraries.* */
	int cache_fd;	      /* of cache_open(), or negative */
};

/* "Python 3.11.2". Asks the cache; on a miss runs version_argv when p->run is set, else -ENODATA. */
int language_version(const struct language *lang, const struct prober *p, char **ret) _must_check_;
/* {"numpy": "1.24.2", …}: those of the modules that are installed; NULL: unknown. Ends with NULL. */
json_t *language_libraries(const struct language *lang, const char *const *modules,
			   const struct prober *p);
