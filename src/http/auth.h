/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is calling, and may they. In this order, before anything else is looked at: the credentials of a
 * unix peer, the Host header, the Origin header, the bearer token. Nothing here allocates.
 */
#pragma once

#include "base/sha256.h"
#include "codec/http-request.h"

#include <sys/types.h>

/* A caller as one request shows it. The same caller has the same name on every connection: queues, histories and limits go by it. */
struct principal {
	char name[64];	  /* "uid:1000" (unix), "token:NAME", "tcp:127.0.0.1" */
	uid_t uid;	  /* of a unix peer; (uid_t)-1 otherwise */
	bool is_operator; /* came over the unix socket, or with a token that is marked so */
};

/* Only the hash of a token is kept. */
struct access_token {
	char name[48];
	char hash[SHA256_HEX];
	bool is_operator; /* may see what is of the server as a whole */
};
/* The name goes into principal.name; refused when either is empty or has blanks or control characters. */
int token_init(struct access_token *t, const char *name, const char *text) _must_check_;

struct auth_rules {
	const struct access_token *tokens;
	size_t n_tokens;
	const char *const *
		allow_hosts; /* further Hosts ("name" for any port, or "name:port"); NULL-terminated or NULL */
	/* Origins of pages that may ask, beside those of the Host itself; NULL-terminated or NULL */
	const char *const *allow_origins;
	uid_t uid; /* unix peers must have this one or be root */
};

/* What is known about a connection when it was accepted. */
struct conn_peer {
	bool is_unix;
	bool needs_token;
	uid_t uid;	  /* unix */
	char address[48]; /* of the other side: "127.0.0.1" */
	char local[48];	  /* our side, as it stands in a Host: "127.0.0.1", "[::1]" */
	uint16_t local_port;
};

/* What is wrong: status 0 is nothing. */
struct auth_verdict {
	int status;
	const char *code, *detail;
};

/* Everything but the token: also for routes that anybody may ask. */
struct auth_verdict auth_check_origin(const struct auth_rules *rules, const struct conn_peer *peer,
				      const struct http_request *head);
/* The token, and who it is. token_needed false: an absent one is fine, a wrong one is still refused. */
struct auth_verdict auth_check_caller(const struct auth_rules *rules, const struct conn_peer *peer,
				      const struct http_request *head, bool token_needed,
				      struct principal *ret);
