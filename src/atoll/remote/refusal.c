/* SPDX-License-Identifier: Apache-2.0 */
/* See refusal.h. */
#include "atoll/remote/refusal.h"

#include "base/buf.h"

#include <string.h>

enum { REFUSAL_BYTES_MAX = 64 << 10 };

int refusal_from_json(const json_t *tree, const char *where, int status, struct error *err)
{
	static const struct meaning {
		const char *code;
		enum error_code means;
		int errnum;
		const char *detail; /* NULL: the daemon's own */
	} codes[] = {
		{ "policy_refused", ERROR_POLICY, EPERM, NULL },
		{ "callbacks_off", ERROR_CALLBACKS_OFF, EPERM, NULL },
		{ "unknown_language", ERROR_RUNTIME, ENOPKG, NULL },
		{ "invalid_field", ERROR_INPUT, EINVAL, NULL },
		{ "invalid_request", ERROR_INPUT, EINVAL, NULL },
		{ "storage", ERROR_STORAGE, ENOSPC, NULL },
		{ "too_large", ERROR_TOO_LARGE, EMSGSIZE, NULL },
		{ "queue_full", ERROR_BUSY, EBUSY, NULL },
		{ "busy", ERROR_NO_ROOM, EBUSY, NULL },
		{ "not_ready", ERROR_NOT_READY, EAGAIN, NULL },
		{ "draining", ERROR_STOPPING, ESHUTDOWN, NULL },
		{ "range", ERROR_INTERNAL, ERANGE, NULL },
		{ "already_ended", ERROR_ENDED, EALREADY, NULL },
		{ "not_ended", ERROR_NOT_ENDED, EAGAIN,
		  "it has not ended yet; `atoll ps` shows what is queued and runs" },
		{ "token_needed", ERROR_INPUT, EACCES,
		  "the daemon wants a token; put it in ATOLL_TOKEN, or the name of its file in "
		  "ATOLL_TOKEN_FILE" },
		{ "wrong_token", ERROR_INPUT, EACCES,
		  "the daemon does not know the token of ATOLL_TOKEN or ATOLL_TOKEN_FILE" },
		{ "not_found", ERROR_NOT_FOUND, ENOENT,
		  "there is no execution with that id; `atoll history list` shows those there "
		  "are" },
	};
	const char *code = json_string_value(json_object_get(tree, "code"));
	const char *detail = json_string_value(json_object_get(tree, "detail"));
	struct meaning means = { NULL, ERROR_INTERNAL, EPROTO, NULL };

	for (size_t i = 0; code && i < ARRAY_SIZE(codes); i++)
		if (strcmp(code, codes[i].code) == 0)
			means = codes[i];
	if (!detail)
		return error_set(err, means.means, means.errnum,
				 "what answers at %s is no atoll daemon: HTTP %d", where, status);
	return error_set(err, means.means, means.errnum, "%s",
			 means.detail ? means.detail : detail);
}

int refusal_from_answer(struct http_client *c, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	struct error ignored = { 0 };
	json_t *tree = NULL;
	struct span piece;
	int r;

	buf_init(&text, REFUSAL_BYTES_MAX);
	while ((r = http_client_read(c, &piece, &ignored)) > 0)
		if (buf_append(&text, piece.data, piece.len) < 0)
			break;
	if (r == 0)
		tree = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	r = refusal_from_json(tree, c->address->text, c->response.status, err);
	json_decref(tree);
	return r;
}
