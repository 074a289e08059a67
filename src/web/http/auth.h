/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication of a request. Checked in this order, before anything else of the request: the credentials of a
 * unix peer, the Host header, the Origin header, the bearer token. Nothing here allocates.
 */
#pragma once

#include "base/sha256.h"
#include "web/codec/http-request.h"
#include "web/http/problem.h"

#include <sys/types.h>

/*
 * The authenticated client of one request. The same caller has the same name on every connection; queue,
 * history and limits use the name.
 */
struct principal {
	char name[64];	  /* "uid:1000" (unix), "token:NAME", "tcp:127.0.0.1" */
	uid_t uid;	  /* of a unix peer; (uid_t)-1 otherwise */
	bool is_operator; /* came over the unix socket, or with a token that is marked so */
};

/* Only the hash of a token is kept. */
struct access_token {
	char name[48];
	char hash[SHA256_HEX];
	bool is_operator; /* may read what concerns the whole server */
};
/* The name goes into principal.name; refused when either is empty or has blanks or control characters. */
int token_init(struct access_token *t, const char *name, const char *text) _must_check_;

struct auth_rules {
	const struct access_token *tokens;
	size_t n_tokens;
	const char *const *
		allow_hosts; /* further Hosts ("name" for any port, or "name:port"); NULL-terminated or NULL */
	/* Origins of pages that may send requests, beside the Host's own; NULL-terminated or NULL. */
	const char *const *allow_origins;
	uid_t uid;	       /* unix peers must have this one or be root */
	const char *challenge; /* WWW-Authenticate of a 401; NULL: "Bearer" */
};

/* What is known about a connection when it is accepted. */
struct conn_peer {
	bool is_unix;
	bool needs_token;
	bool old_headers; /* its answers have those of ROUTE_OLD_HEADERS */
	uid_t uid;	  /* unix */
	char address[48]; /* of the other side: "127.0.0.1" */
	char local[48];	  /* this side, as a Host header writes it: "127.0.0.1", "[::1]" */
	uint16_t local_port;
};

/* The name of a client without a token, by what is known about its connection. */
void auth_name_peer(const struct conn_peer *peer, char ret[sizeof(((struct principal *)0)->name)]);
/* Both give NO_PROBLEM when they accept. This one checks everything but the token; also for public routes. */
struct problem auth_check_origin(const struct auth_rules *rules, const struct conn_peer *peer,
				 const struct http_request *head);
/*
 * Checks the token and names the principal. If token_needed is false, a missing token is accepted and a wrong
 * one still refused.
 */
struct problem auth_check_caller(const struct auth_rules *rules, const struct conn_peer *peer,
				 const struct http_request *head, bool token_needed,
				 struct principal *ret);
