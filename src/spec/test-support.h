/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the unit tests of spec/ and plan/policy/. Tests may read files; the code under test may not. */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "spec/request.h"
#include "spec/yaml.h"

static inline json_t *json_from(const char *text)
{
	struct document doc = { "test", text, strlen(text) };
	struct error err = { 0 };
	json_t *root = NULL;

	if (json_parse(&doc, &root, &err) < 0)
		fail_msg("%s in %s", err.text, text);
	return root;
}

static inline struct request *request_from(const char *text)
{
	json_t *root = json_from(text);
	struct error err = { 0 };
	struct request *req = NULL;

	if (request_parse(root, &req, &err) < 0)
		fail_msg("%s in %s", err.text, text);
	json_decref(root);
	return req;
}

/* A file's whole content; the caller frees. */
static inline char *text_of_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_buf_ struct buf b = { 0 };

	buf_init(&b, 1 << 20);
	if (fd < 0 || buf_read_fd(&b, fd) < 0)
		fail_msg("cannot read %s", path);
	return buf_take(&b);
}
