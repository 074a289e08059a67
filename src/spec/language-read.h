/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of the language reader. */
#pragma once

#include "spec/language.h"
#include "spec/read.h"

enum { NAME_BYTES_MAX = 32, TEXT_BYTES_MAX = 1024, WORDS_COUNT_MAX = 256 };

/* A map of names and texts, or a list of "K=V" words: both become words. */
int language_read_env(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object) _must_check_;
/* The section `warm`; object is the language. */
int language_read_warm(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object) _must_check_;
/* The section `workspace`; object is the language. */
int language_read_workspace(const struct reader *r, const struct key_rule *rule,
			    const json_t *value, void *object) _must_check_;
/* The section `kit`; object is the language. */
int language_read_kit(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object) _must_check_;
/* The section `versions`: checked here, built by the next function. */
int language_read_versions(const struct reader *r, const struct key_rule *rule, const json_t *value,
			   void *object) _must_check_;
int language_make_versions(const struct reader *r, struct language *lang) _must_check_;
/* A whole language; takes over root. The reader only gives the place in the file and its error. */
int language_read_tree(const struct reader *r, json_t *root, struct language **ret) _must_check_;
