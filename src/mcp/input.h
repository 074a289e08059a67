/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input that a tool, a prompt or a resource needs from the client while it is being answered: a form filled in (elicitation), a
 * model asked (sampling), the client's roots.
 *
 * The handler is written once, for both eras: it looks for the input it needs, and when it is not there, asks for it and
 * returns 0. It is then called again, from its beginning, with the input. In the modern era the client repeats its request
 * with the input and with the state that the handler gave; in the legacy era the server sends requests to the client, and
 * calls the handler again when all of them are answered.
 */
#pragma once

#include "mcp/call.h"

/* The client's result for the request with this key; NULL: it has not been given. */
const json_t *mcp_call_input(const struct mcp_call *call, const char *key);
/* What the handler said when it asked; NULL: nothing. The client cannot change it. */
const json_t *mcp_call_state(const struct mcp_call *call);
/*
 * requests: {KEY: {"method": "elicitation/create", "params": {…}}}; state: any tree, or NULL. Takes over both. Returns 0 for the
 * handler to return: the request is answered, or the handler will be called again. A client that has not declared the capability
 * gets an error instead.
 */
int mcp_call_ask(struct mcp_call *call, json_t *requests, json_t *state);
