/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of RFC 6455; wslay handles the frames. */
#pragma once

#include "web/codec/http-request.h"

enum { WEBSOCKET_ACCEPT = 29 };

/* Sec-WebSocket-Accept for a key. */
void websocket_accept(struct span key, char ret[WEBSOCKET_ACCEPT]);
/*
 * 0: a valid handshake, ret is set; otherwise the status to answer: 400, or 426 with Sec-WebSocket-Version: 13.
 */
int websocket_check(const struct http_request *r, char ret[WEBSOCKET_ACCEPT]);
