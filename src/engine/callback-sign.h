/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of callbacks, as Standard Webhooks has them. Pure. */
#pragma once

#include "base/buf.h"
#include "base/span.h"

struct callback_message {
	const char *id;
	int64_t timestamp_s;
	struct span body;
};

/* "v1,BASE64 v1,BASE64": one for each secret ("whsec_…", checked), so that a secret can be replaced. */
int callback_sign(const char *const *secrets, const struct callback_message *m,
		  struct buf *ret) _must_check_;
