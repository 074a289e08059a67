/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of the request reader: readers of one value each. */
#pragma once

#include "spec/read.h"
#include "spec/request.h"

/* Bytes: a text, or {"base64": …}. May hold NUL bytes. data is never NULL afterwards. */
int request_read_bytes(const struct reader *r, const json_t *value, struct span *ret) _must_check_;
/* The rows of request.c's table that need more than a shared reader; object is the request. */
int request_read_files(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object) _must_check_;
int request_read_mounts(const struct reader *r, const struct key_rule *rule, const json_t *value,
			void *object) _must_check_;
int request_read_stages(const struct reader *r, const struct key_rule *rule, const json_t *value,
			void *object) _must_check_;
int request_read_tests(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object) _must_check_;
int request_read_invoke(const struct reader *r, const struct key_rule *rule, const json_t *value,
			void *object) _must_check_;

/* request-checker.c: `tests[].checker`. previous: the program of the test before, or NULL. */
int request_read_checker(const struct reader *r, const json_t *value, struct request *previous,
			 struct request_checker *ret) _must_check_;
/* request.c: the request that a checker or an interactor is, with the words that it gets. */
int request_read_program(const struct reader *r, json_t *value, const char *const *args,
			 struct request **ret) _must_check_;

/* request-tests.c: the rest of what says how a program is judged. */
int request_read_groups(const struct reader *r, const struct key_rule *rule, const json_t *value,
			void *object) _must_check_;
int request_read_stop_at(const struct reader *r, const struct key_rule *rule, const json_t *value,
			 void *object) _must_check_;
int request_read_interactor(const struct reader *r, const struct key_rule *rule,
			    const json_t *value, void *object) _must_check_;
/* Rules between tests, groups and the rest of the request, when all are read. */
int request_link_tests(const struct reader *r, struct request *req) _must_check_;

struct file_list {
	struct request_file *files;
	size_t n;
};
int request_read_file_list(const struct reader *r, const json_t *value,
			   struct file_list *ret) _must_check_;
/* Whether a file of both lists together is the directory of another one. */
int request_check_nesting(const struct reader *r, struct file_list list,
			  struct file_list more) _must_check_;
struct var_list {
	struct request_var *vars;
	size_t n;
};
int request_read_env(const struct reader *r, const json_t *value,
		     struct var_list *ret) _must_check_;
/* Refuses words and variables that together exceed the kernel's limit for exec. */
int request_check_words(const struct reader *r, const char *const *words,
			struct var_list env) _must_check_;
