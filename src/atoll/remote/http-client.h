/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small blocking HTTP/1.1 client: one connection, one request, one answer. web/codec/ reads heads and bodies, so
 * an answer that Atoll's server cannot have written is refused. Memory is bounded: the body comes in pieces of
 * the client's own buffer.
 *
 *   http_client_open ─▶ http_client_send ─▶ http_client_head ─▶ http_client_read… ─▶ http_client_free
 */
#pragma once

#include "base/error.h"
#include "web/codec/http-request.h"
#include "web/codec/http-response.h"

#include <sys/socket.h>

struct http_address {
	char text[128]; /* as given, for messages */
	char host[80];	/* of the Host header */
	struct sockaddr_storage socket;
	socklen_t socket_len;
	bool is_unix;
};

/*
 * "/path", "unix:/path", "http://127.0.0.1:8700". A host is a number or localhost: `atoll` resolves no names.
 */
int http_address_parse(const char *text, struct http_address *ret, struct error *err) _must_check_;

enum { HTTP_CLIENT_BUFFER = 160 << 10 };

struct http_client {
	const struct http_address *address;
	int fd;
	/*
	 * When readable: the client half-closes (the server then cancels: ?disconnect=cancel) and reads the
	 * rest of the answer for some time. -EBADF: none.
	 */
	int cancel_fd;
	int timeout_ms; /* of silence; -1: none */
	/* Tells how much of a large request is sent; NULL: not wanted. */
	void (*on_sent)(void *data, size_t sent, size_t of);
	void *data;
	bool sent; /* every byte of the request; the server cannot have acted on it before */
	bool over; /* the body is complete */
	struct http_response response;
	size_t at, len; /* the part of buffer that is not read yet */
	char buffer[HTTP_CLIENT_BUFFER];
};

struct http_call {
	enum http_method method;
	const char *target;	   /* encoded */
	const char *accept;	   /* NULL: application/json */
	const char *range;	   /* "bytes=0-"; or NULL */
	const char *token;	   /* or NULL */
	const char *websocket_key; /* asks for a WebSocket; or NULL */
	const char *upgrade;	   /* asks for that protocol, which needs no key; or NULL */
	struct span body;	   /* data NULL: none */
	const char *content_type;  /* of the body; NULL: application/json */
};

/* Connects. Sets no message: the caller knows what a missing server means. */
int http_client_open(const struct http_address *address, struct http_client **ret) _must_check_;
struct http_client *http_client_free(struct http_client *c); /* NULL is fine; returns NULL */
static inline void http_client_cleanup(struct http_client **c)
{
	(void)http_client_free(*c);
}
#define _cleanup_http_client_ _cleanup_(http_client_cleanup)

/*
 * A server may answer before it has read everything (413). So a connection that breaks meanwhile is no failure
 * yet: `sent` stays false, and the head tells what happened.
 */
int http_client_send(struct http_client *c, const struct http_call *call,
		     struct error *err) _must_check_;
/* Waits for the head. */
int http_client_head(struct http_client *c, struct error *err) _must_check_;
/* The meaning of the status in that head. */
enum http_answer {
	HTTP_ANSWER_GOOD,     /* 2xx */
	HTTP_ANSWER_SWITCHED, /* 101: http_client_receive() */
	HTTP_ANSWER_DECLINED, /* 413, 421, 429, 503: this server does not do it now; nothing was done */
	HTTP_ANSWER_REFUSED, /* any other: the body says why */
};
enum http_answer http_client_answer(const struct http_client *c);
/* 1: a piece of the body, valid until the next call; 0: the body is complete. */
int http_client_read(struct http_client *c, struct span *ret, struct error *err) _must_check_;
/* After a 101: bytes as they come, valid until the next call; 0: the end. */
int http_client_receive(struct http_client *c, struct span *ret, struct error *err) _must_check_;
/* The same as a readable cancel_fd. */
void http_client_hang_up(struct http_client *c);
