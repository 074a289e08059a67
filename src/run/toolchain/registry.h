/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The languages of a data directory. A name is first looked up as languages/<name>.yaml, so that the usual run
 * reads one small file; only aliases, detection and listing read all files. The registry owns its languages.
 */
#pragma once

#include "base/error.h"
#include "run/toolchain/toolchain.h"
#include "spec/language.h"
#include "spec/request.h"

#include <jansson.h>

struct registry;

int registry_new(const char *data_dir, struct registry **ret, struct error *err) _must_check_;
struct registry *registry_free(struct registry *reg);
static inline void registry_cleanup(struct registry **reg)
{
	(void)registry_free(*reg);
}

/*
 * By name or alias, ignoring case. "python@3.12" is the version that python's file defines; if the file defines
 * no such version, it is python itself, and registry_open_version() gives the version to confirm. Unknown:
 * -ENOPKG, with the known names.
 */
int registry_find(struct registry *reg, const char *name, const struct language **ret,
		  struct error *err) _must_check_;
/* The version that was asked for and that only the runtime itself can confirm; NULL: none. */
const char *registry_open_version(const struct language *found, const char *asked);
/* By the extension of path (may be NULL), else by a `#!` line at the start of head. */
struct registry_sample {
	const char *path;
	const char *head;
	size_t head_len;
};
int registry_detect(struct registry *reg, const struct registry_sample *sample,
		    const struct language **ret, struct error *err) _must_check_;
/* At least every language whose file contains the word; broken files are skipped. The registry owns *ret. */
int registry_list(struct registry *reg, const char *word, const struct language *const **ret,
		  size_t *n, struct error *err) _must_check_;
/* The content of runners/<name>, read once; a failure is remembered, too. */
int registry_runner(struct registry *reg, const char *name, struct span *ret) _must_check_;
/* The list of `atoll languages --json` and GET /v1/languages. */
int registry_to_json(struct registry *reg, const struct prober *p, json_t **ret,
		     struct error *err) _must_check_;
