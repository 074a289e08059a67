/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 as MCP uses it, as pure functions: text ↔ messages. No batches; an id is a text or an integer, never null.
 */
#pragma once

#include "base/span.h"

#include <jansson.h>

enum mcp_message_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
	json_t *root; /* owned; the others are parts of it */
	enum mcp_message_kind kind;
	json_t *id;	    /* NULL: a notification */
	const char *method; /* NULL: a response */
	json_t *params;	    /* an object, or NULL */
	json_t *result, *error;
};

/* Why a text is no message: the error that answers it. id: what could be read of it, or NULL; a new reference. */
struct mcp_fault {
	int code;
	char text[256];
	json_t *id;
};

/* -EINVAL: fault is set. */
int mcp_message_read(struct span text, struct mcp_message *ret,
		     struct mcp_fault *fault) _must_check_;
void mcp_message_done(struct mcp_message *m);

/* Each gives a new tree, NULL: no memory, and takes over result, params and data. id NULL: null. */
json_t *mcp_make_result(const json_t *id, json_t *result);
json_t *mcp_make_error(const json_t *id, int code, const char *text, json_t *data);
json_t *mcp_make_notification(const char *method, json_t *params);
json_t *mcp_make_request(const json_t *id, const char *method, json_t *params);
/* As text, to be freed; takes over the tree; NULL: no memory. */
char *mcp_message_text(json_t *tree);
/* A text that names something; NULL: it is none, or has a NUL, behind which a comparison would not look. */
const char *mcp_plain_text(const json_t *value);
