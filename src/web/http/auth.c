/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See auth.h. The Host check stops a web page whose name resolves to 127.0.0.1 (DNS rebinding). The Origin
 * check stops a page that posts here openly. Neither check hinders other clients.
 */
#include "web/http/auth.h"

#include <stdio.h>

enum { TOKEN_BYTES_MAX = 4096 };

static void hash_token(struct span text, char ret[SHA256_HEX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_update(&h, text.data, text.len);
	sha256_final(&h, ret);
}

static bool is_plain_token(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f)
			return false;
	return text[0];
}

int token_init(struct access_token *t, const char *name, const char *text)
{
	if (!is_plain_token(name) || !is_plain_token(text) || strlen(name) >= sizeof(t->name) ||
	    strlen(text) > TOKEN_BYTES_MAX)
		return -EINVAL;
	*t = (struct access_token){ 0 };
	(void)snprintf(t->name, sizeof(t->name), "%s", name);
	hash_token(span_of(text), t->hash);
	return 0;
}

/* Splits "name[:port]"; an IPv6 address keeps its brackets. */
static void split_host(struct span host, struct span *name, struct span *port)
{
	size_t i = host.len;

	while (i > 0 && host.data[i - 1] != ':' && host.data[i - 1] != ']')
		i--;
	*name = host;
	*port = (struct span){ 0 };
	if (i == 0 || host.data[i - 1] == ']')
		return;
	name->len = i - 1;
	*port = (struct span){ host.data + i, host.len - i };
}

static bool host_is_ours(const struct conn_peer *peer, struct span name, struct span port)
{
	const char *const names[] = { "localhost", "127.0.0.1", "[::1]", peer->local };
	int64_t number = 0;
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		known = known || (names[i][0] && span_is_nocase(name, names[i]));
	if (!known || !port.data || peer->is_unix)
		return known;
	return span_to_i64(port, &number) == 0 && number == peer->local_port;
}

static bool auth_lists(const char *const *list, struct span text)
{
	while (list && *list && !span_is_nocase(text, *list))
		list++;
	return list && *list;
}

/*
 * A page's host name cannot resolve to a unix socket, so the Host that a client of the unix socket sends is not
 * checked. It is checked if a header shows that a proxy forwards a browser's request.
 */
static bool host_matters(const struct conn_peer *peer, const struct http_request *head)
{
	return !peer->is_unix || http_request_field(head, "origin").data ||
	       http_request_field(head, "sec-fetch-site").data;
}

static struct problem check_host(const struct auth_rules *rules, const struct conn_peer *peer,
				 struct span host)
{
	struct span name, port;

	if (host.data) {
		split_host(host, &name, &port);
		if (host_is_ours(peer, name, port) || auth_lists(rules->allow_hosts, host) ||
		    auth_lists(rules->allow_hosts, name))
			return NO_PROBLEM;
	}
	return PROBLEM(421, "wrong_host",
		       "This server does not answer to that Host; start it with "
		       "--allow-host NAME to add one.");
}

/* The same host and port as asked for, over http or https (a proxy in front may speak TLS). */
static bool origin_is_host(struct span origin, struct span host)
{
	static const char *const schemes[] = { "http://", "https://" };

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (origin.len == n + host.len &&
		    span_is_nocase((struct span){ origin.data, n }, schemes[i]) &&
		    strncasecmp(origin.data + n, host.data, host.len) == 0)
			return true;
	}
	return false;
}

struct problem auth_check_origin(const struct auth_rules *rules, const struct conn_peer *peer,
				 const struct http_request *head)
{
	struct span host = http_request_field(head, "host");
	struct span origin = http_request_field(head, "origin");
	struct problem v;

	if (peer->is_unix && peer->uid != rules->uid && peer->uid != 0)
		return PROBLEM(403, "wrong_user",
			       "This socket serves the user who runs the server.");
	v = host_matters(peer, head) ? check_host(rules, peer, host) : NO_PROBLEM;
	if (v.status)
		return v;
	if (origin.data &&
	    (http_head_count(&head->head, "origin") > 1 ||
	     !(origin_is_host(origin, host) || auth_lists(rules->allow_origins, origin))))
		return PROBLEM(
			403, "wrong_origin",
			"Pages of this origin may not use the server; its operator can list the "
			"origin in allow_origins.");
	return NO_PROBLEM;
}

static struct span auth_bearer(const struct http_request *head)
{
	struct span value = http_request_field(head, "authorization"), scheme;

	if (!span_split(&value, ' ', &scheme) || !span_is_nocase(scheme, "bearer"))
		return (struct span){ 0 };
	return span_trim(value);
}

static const struct access_token *find_token(const struct auth_rules *rules, struct span text)
{
	const struct access_token *found = NULL;
	char hash[SHA256_HEX];

	hash_token(text, hash);
	for (size_t i = 0; i < rules->n_tokens; i++)
		if (span_is_secret(span_of(rules->tokens[i].hash), hash))
			found = &rules->tokens[i];
	return found;
}

void auth_name_peer(const struct conn_peer *peer, char ret[sizeof(((struct principal *)0)->name)])
{
	const size_t size = sizeof(((struct principal *)0)->name);

	if (peer->is_unix)
		(void)snprintf(ret, size, "uid:%u", peer->uid);
	else
		(void)snprintf(ret, size, "tcp:%s", peer->address);
}

struct problem auth_check_caller(const struct auth_rules *rules, const struct conn_peer *peer,
				 const struct http_request *head, bool token_needed,
				 struct principal *ret)
{
	size_t given = http_head_count(&head->head, "authorization");
	struct principal principal = { .uid = peer->is_unix ? peer->uid : (uid_t)-1,
				       .is_operator = peer->is_unix };
	const struct access_token *token = NULL;

	auth_name_peer(peer, principal.name);
	/*
	 * If the server has no tokens, an Authorization header is ignored: some client libraries always send
	 * one.
	 */
	if (given > 0 && rules->n_tokens > 0) {
		struct span text = auth_bearer(head);

		if (given == 1 && text.len > 0)
			token = find_token(rules, text);
		if (!token)
			return PROBLEM(401, "wrong_token",
				       "This is none of the server's tokens; send one of them: "
				       "Authorization: Bearer TOKEN.");
		(void)snprintf(principal.name, sizeof(principal.name), "token:%s", token->name);
		principal.is_operator = principal.is_operator || token->is_operator;
	}
	if (token_needed && !token)
		return PROBLEM(401, "token_needed",
			       "Send the server's token: Authorization: Bearer TOKEN.");
	*ret = principal;
	return NO_PROBLEM;
}
