/* SPDX-License-Identifier: Apache-2.0 */
/* See session-file.h. */
#include "mcp/session-file.h"

#include "base/base64.h"
#include "base/buf.h"
#include "mcp/tool-shapes.h"
#include "session/session.h"

#include <string.h>

enum { FILE_BYTES_MAX = 32 << 20 };

struct file_awaited {
	struct mcp_work *work;
	bool replied;
	json_t *answer;
	struct error err;
};

static void on_file(void *data, const json_t *answer, const struct error *err)
{
	struct file_awaited *a = data;

	a->replied = true;
	a->err = *err;
	if (err->code == ERROR_NONE)
		a->answer = json_incref((json_t *)(uintptr_t)answer);
	work_wake(a->work);
}

/* *ret: a new reference. A reply always comes. */
static int ask_file(struct mcp_work *w, const struct session_file *file, json_t **ret,
		    struct error *err)
{
	struct file_awaited a = { .work = w };
	struct session *s = NULL;
	int r = tool_session(w, &s, err);

	if (r == 0)
		r = session_file(s, file, (struct session_file_reply){ &a, on_file }, err);
	if (r < 0)
		return r;
	while (!a.replied)
		work_wait(0);
	if (a.err.code != ERROR_NONE) {
		*err = a.err;
		return -EIO;
	}
	*ret = a.answer;
	return 0;
}

int session_file_write(struct mcp_work *w, const char *path, struct span bytes, struct error *err)
{
	const struct session_file file = { .op = SESSION_WRITE, .path = path, .bytes = bytes };
	json_t *answer = NULL;
	int r = ask_file(w, &file, &answer, err);

	json_decref(answer);
	return r;
}

/* One piece of the file behind those in `ret`. 1: there is more. */
static int read_piece(struct mcp_work *w, const char *path, struct buf *ret, struct error *err)
{
	const struct session_file file = { .op = SESSION_READ,
					   .path = path,
					   .offset = (int64_t)ret->len };
	_cleanup_free_ char *bytes = NULL;
	json_t *answer = NULL;
	int64_t size;
	size_t len, n = 0;
	int r = ask_file(w, &file, &answer, err);

	if (r < 0)
		return r;
	len = json_string_length(json_object_get(answer, "base64"));
	size = json_integer_value(json_object_get(answer, "size"));
	bytes = malloc(base64_decoded_max(len) + 1);
	r = bytes && len > 0 ? base64_decode(json_string_value(json_object_get(answer, "base64")),
					     len, bytes, &n)
			     : 0;
	json_decref(answer);
	if (!bytes)
		return error_oom(err);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, EPROTO,
				 "the session answered with something that is no file");
	if (size > FILE_BYTES_MAX || buf_append(ret, bytes, n) < 0)
		return error_set(err, ERROR_TOO_LARGE, EFBIG,
				 "the file is larger than the %d MiB that this tool reads; read a "
				 "part of it by code in the session",
				 FILE_BYTES_MAX >> 20);
	return n > 0 && (int64_t)ret->len < size;
}

int session_file_read(struct mcp_work *w, const char *path, char **ret, size_t *ret_len,
		      struct error *err)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	int r;

	buf_init(&bytes, FILE_BYTES_MAX);
	do
		r = read_piece(w, path, &bytes, err);
	while (r > 0);
	if (r < 0)
		return r;
	*ret_len = bytes.len;
	*ret = bytes.data ? TAKE_PTR(bytes.data) : strdup("");
	bytes = (struct buf){ 0 };
	return *ret ? 0 : error_oom(err);
}

int session_file_list(struct mcp_work *w, json_t **ret, struct error *err)
{
	const struct session_file file = { .op = SESSION_LIST, .path = "." };
	json_t *answer = NULL, *entries;
	int r = ask_file(w, &file, &answer, err);

	if (r < 0)
		return r;
	entries = json_object_get(answer, "entries");
	*ret = entries ? json_incref(entries) : json_array();
	json_decref(answer);
	return 0;
}
