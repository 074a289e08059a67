/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handle remembers between runs, so that a run reads no file it has read before: policies as they were built,
 * versions of runtimes. Each stands for a file as it was; one stat() says whether it still is.
 */
#pragma once

#include "client/toolchain.h"
#include "policy/policy.h"

enum { MEMO_POLICIES = 8, MEMO_VERSIONS = 32 };

struct memo {
	struct memo_policy {
		char *name;
		struct tool_id file;
		struct policy *policy;
		uint64_t used; /* when, in turns */
	} policies[MEMO_POLICIES];
	struct memo_version {
		const struct language *language; /* NULL: free */
		struct tool_id runtime;
		char *version;
	} versions[MEMO_VERSIONS];
	uint64_t turn;
	size_t next_version;
};

/* NULL: not known, or its file has changed. */
struct policy *memo_policy(struct memo *m, const char *name, const struct tool_id *file);
/*
 * Takes the policy, in the place of the one that was used longest ago: a run's own stays as long as it lasts, for what
 * it does on the side asks for one other policy at most. -ENOMEM: it is still the caller's.
 */
int memo_keep_policy(struct memo *m, const char *name, const struct tool_id *file,
		     struct policy *policy) _must_check_;
/* language_version() of a language of this host's, asked once. */
int memo_version(struct memo *m, const struct language *lang, const struct prober *p,
		 char **ret) _must_check_;
void memo_done(struct memo *m);
