/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers policies, versions of runtimes and their modules between runs, so that a run reads no file again. Each entry
 * belongs to one state of a file; one stat() shows whether the file has changed.
 */
#pragma once

#include "plan/policy/policy.h"
#include "run/toolchain/toolchain.h"

enum { MEMO_POLICIES = 8, MEMO_VERSIONS = 32, MEMO_MODULES = 32 };

/* A policy that runs may be using: it outlives its place in the memo. */
struct memo_policy {
	char *name;
	struct tool_id file;
	struct policy *policy;
	uint64_t used;	/* number of the last use */
	size_t holders; /* the memo is one while it keeps the entry */
};

struct memo {
	struct memo_policy *policies[MEMO_POLICIES];
	struct memo_version {
		const struct language *language; /* NULL: free */
		struct tool_id runtime;
		char *version;
	} versions[MEMO_VERSIONS];
	struct memo_module {			 /* that a runtime has */
		const struct language *language; /* NULL: free */
		struct tool_id runtime;
		char *name;
	} modules[MEMO_MODULES];
	uint64_t uses;
	size_t next_version, next_module;
};

/* The caller holds it until memo_release(). NULL: unknown, or its file has changed. */
struct memo_policy *memo_policy(struct memo *m, const char *name, const struct tool_id *file);
/* Takes over the policy, in place of the least recently used one. NULL: no memory; the caller still owns it. */
struct memo_policy *memo_keep_policy(struct memo *m, const char *name, const struct tool_id *file,
				     struct policy *policy);
void memo_release(struct memo_policy *p); /* NULL is fine */
/* language_version() of a language of this host, asked once. */
int memo_version(struct memo *m, const struct language *lang, const struct prober *p,
		 char **ret) _must_check_;
/* Whether memo_keep_module() was told that this language of this host has the module. */
bool memo_has_module(struct memo *m, const struct language *lang, const char *name);
void memo_keep_module(struct memo *m, const struct language *lang, const char *name);
void memo_done(struct memo *m);
