/* SPDX-License-Identifier: Apache-2.0 */
/* See session-file.h. */
#include "mcp/session-file.h"

#include "base/base64.h"
#include "loop/worker.h"
#include "mcp/tool-shapes.h"
#include "session/session.h"

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
	const struct session_file file = { SESSION_WRITE, path, bytes };
	json_t *answer = NULL;
	int r = ask_file(w, &file, &answer, err);

	json_decref(answer);
	return r;
}

struct file_decoding {
	const json_t *base64;
	char *bytes; /* NULL: it is none */
	size_t len;
};

static void decode_session_file(void *data)
{
	struct file_decoding *d = data;
	size_t len = json_string_length(d->base64);
	char *bytes = json_is_string(d->base64) ? malloc(base64_decoded_max(len) + 1) : NULL;

	if (bytes && base64_decode(json_string_value(d->base64), len, bytes, &d->len) == 0)
		d->bytes = TAKE_PTR(bytes);
	free(bytes);
}

int session_file_read(struct mcp_work *w, const char *path, char **ret, size_t *ret_len,
		      struct error *err)
{
	const struct session_file file = { .op = SESSION_READ, .path = path };
	struct file_decoding d = { 0 };
	json_t *answer = NULL;
	int r = ask_file(w, &file, &answer, err);

	if (r < 0)
		return r;
	d.base64 = json_object_get(answer, "base64");
	worker_call(json_string_length(d.base64), decode_session_file, &d);
	json_decref(answer);
	if (!d.bytes)
		return error_set(err, ERROR_INTERNAL, EPROTO,
				 "the session answered with something that is no file");
	*ret = d.bytes;
	*ret_len = d.len;
	return 0;
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
