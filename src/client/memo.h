/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handle remembers between runs, so that a run reads no file it has read before: policies as they were built,
 * versions of runtimes. Each stands for a file as it was; one stat() says whether it still is.
 */
#pragma once

#include "policy/policy.h"
#include "toolchain/toolchain.h"

enum { MEMO_POLICIES = 8, MEMO_VERSIONS = 32 };

/* A policy that runs may be using: it outlives its place in the memo. */
struct memo_policy {
	char *name;
	struct tool_id file;
	struct policy *policy;
	uint64_t used;	/* when, in turns */
	size_t holders; /* the memo is one as long as it knows it */
};

struct memo {
	struct memo_policy *policies[MEMO_POLICIES];
	struct memo_version {
		const struct language *language; /* NULL: free */
		struct tool_id runtime;
		char *version;
	} versions[MEMO_VERSIONS];
	uint64_t turn;
	size_t next_version;
};

/* The caller holds it until memo_release(). NULL: not known, or its file has changed. */
struct memo_policy *memo_policy(struct memo *m, const char *name, const struct tool_id *file);
/* Takes the policy, in the place of the one that was used longest ago. NULL: no memory, and it is still the caller's. */
struct memo_policy *memo_keep_policy(struct memo *m, const char *name, const struct tool_id *file,
				     struct policy *policy);
void memo_release(struct memo_policy *p); /* NULL is fine */
/* language_version() of a language of this host's, asked once. */
int memo_version(struct memo *m, const struct language *lang, const struct prober *p,
		 char **ret) _must_check_;
void memo_done(struct memo *m);
