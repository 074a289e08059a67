/* SPDX-License-Identifier: Apache-2.0 */
/* See callback-sign.h: the HMAC-SHA-256 of "ID.TIMESTAMP.BODY". */
#include "engine/callback-sign.h"

#include "base/base64.h"
#include "base/hmac.h"

#include <inttypes.h>
#include <stdio.h>

enum { PREFIX = sizeof("whsec_") - 1, KEY_TEXT_MAX = 128 };

static int sign_message(const char *secret, const struct span *parts, size_t n, struct buf *ret)
{
	char key[KEY_TEXT_MAX];
	uint8_t mac[SHA256_BYTES];
	size_t text_len = strlen(secret), key_len = 0;
	_cleanup_free_ char *text = NULL;
	int r = text_len > PREFIX && text_len < sizeof(key)
			? base64_decode(secret + PREFIX, text_len - PREFIX, key, &key_len)
			: -EINVAL;

	if (r < 0)
		return r;
	hmac_sha256((struct span){ key, key_len }, parts, n, mac);
	text = base64_encode(mac, sizeof(mac));
	return text ? buf_printf(ret, "%sv1,%s", ret->len > 0 ? " " : "", text) : -ENOMEM;
}

int callback_sign(const char *const *secrets, const struct callback_message *m, struct buf *ret)
{
	char head[64];
	const int n = snprintf(head, sizeof(head), "%s.%" PRId64 ".", m->id, m->timestamp_s);
	const struct span parts[] = { { head, (size_t)n }, m->body };
	int r = n > 0 && (size_t)n < sizeof(head) ? 0 : -EINVAL;

	for (; r == 0 && *secrets; secrets++)
		r = sign_message(*secrets, parts, ARRAY_SIZE(parts), ret);
	return r;
}
