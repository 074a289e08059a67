/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of the request reader: readers of rows, and the rules that several rows share. */
#pragma once

#include "spec/read.h"
#include "spec/request.h"

/* The tables of request-tests.c. */
extern const struct schema_field request_test_fields[], request_group_fields[],
	request_tolerance_fields[];
/* The shapes of contents, in request-files.c. */
extern const struct schema_field request_encoded_fields[], request_content_fields[];

/* Bytes: a text, or {"base64": …}. May hold NUL bytes. data is never NULL afterwards. */
field_reader request_read_bytes;
/* Lists of files and of variables; the member beside is their number. */
field_reader request_read_files, request_read_env;
/* The rows of a whole request. */
field_reader request_read_mounts, request_read_tests, request_read_groups;

/* What a row takes as a list or an object: how a refusal names it, and its bounds. */
struct request_form {
	json_type type;
	const char *wanted; /* "a list of tests, such as […]" */
	const char *what;   /* " tests" */
	size_t max, size;   /* entries, and bytes of one in memory */
};
/* Zeroed memory for the entries of a value of that form, into a pointer of any type; refuses other values. */
int request_room(const struct reader *r, const json_t *value, const struct request_form *form,
		 void *ret) _must_check_;

/* request.c: the request that a checker or an interactor is, with the words that it gets. */
int request_read_program(const struct reader *r, json_t *value, const char *const *args,
			 struct request **ret) _must_check_;
/* Rules between tests, groups and the rest of the request, when all are read. */
int request_link_tests(const struct reader *r, struct request *req) _must_check_;

struct file_list {
	const struct request_file *files;
	size_t n;
};
/* Whether a file of both lists together is the directory of another one. */
int request_check_nesting(const struct reader *r, struct file_list list,
			  struct file_list more) _must_check_;
struct var_list {
	const struct request_var *vars;
	size_t n;
};
/* Refuses words and variables that together exceed the kernel's limit for exec. */
int request_check_words(const struct reader *r, const char *const *words,
			struct var_list env) _must_check_;
