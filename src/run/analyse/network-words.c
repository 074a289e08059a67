/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See network-words.h. A line that has one of `failures` tells of an attempt. Its destination stands in the same line, in one of the
 * ways of `places`, as an address with a port, or in front of the failure; otherwise it is the last one that the text in front of that
 * line has as a tuple of Python or as a URL, because tracebacks show the line of the program that failed.
 */
#include "run/analyse/network-words.h"

#include <ctype.h>
#include <stdio.h>

enum { TEXT_MAX = 16 << 10, WORD_MAX = sizeof(((struct destination *)0)->host) };

static const struct {
	const char *words;
	bool lookup;
} failures[] = {
	{ "etwork is unreachable", false },
	{ "ENETUNREACH", false },
	{ "Temporary failure in name resolution", true },
	{ "Name or service not known", true },
	{ "EAI_AGAIN", true },
	{ "ENOTFOUND", true },
	{ "Could not resolve host", true },
	{ "UnknownHostException", true },
	{ "dial tcp: lookup ", true },
	{ "dial udp: lookup ", true },
};

/* What stands in front of a host, and between host and port; between NULL: there is no port. */
static const struct {
	const char *before, *between;
} places[] = {
	{ "EAI_AGAIN ", NULL },
	{ "ENOTFOUND ", NULL },
	{ "resolve host: ", NULL },
	{ "UnknownHostException: ", NULL },
	{ ": lookup ", NULL },
	{ "host='", "', port=" },
	{ "/dev/tcp/", "/" },
	{ "/dev/udp/", "/" },
	{ "connect(2) for \"", "\" port " },
};

static const char *find(struct span text, const char *words)
{
	return memmem(text.data, text.len, words, strlen(words));
}

static struct span rest_of(struct span text, const char *from)
{
	return (struct span){ from, (size_t)(text.data + text.len - from) };
}

static bool is_of_host(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '-' || c == ':' || c == '[' ||
	       c == ']';
}

static uint16_t read_port(struct span at)
{
	uint32_t port = 0;

	for (size_t i = 0; i < at.len && i < 5 && isdigit((unsigned char)at.data[i]); i++)
		port = port * 10 + (uint32_t)(at.data[i] - '0');
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* A host of another machine at the front of `at`, up to what no host has. */
static bool take_host(struct span at, bool with_port, struct destination *ret)
{
	char word[WORD_MAX + 8];
	struct sockaddr_storage address;
	size_t n = 0;

	while (n < at.len && n < sizeof(word) - 1 && is_of_host(at.data[n]))
		n++;
	while (n > 0 && (at.data[n - 1] == ':' || at.data[n - 1] == '.'))
		n--;
	(void)snprintf(word, sizeof(word), "%.*s", (int)n, at.data);
	if (n == 0 || destination_parse(word, ret) < 0 || (with_port && !ret->port))
		return false;
	if (address_parse(ret->host, &address))
		return strncmp(ret->host, "127.", 4) != 0 && strcmp(ret->host, "::1") != 0 &&
		       strcmp(ret->host, "0.0.0.0") != 0 && strcmp(ret->host, "::") != 0;
	/* Of words with a colon only addresses are meant: main.go:12 is a place in a file. */
	return !with_port && strcmp(ret->host, "localhost") != 0;
}

static bool find_place(struct span line, struct destination *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const char *at = find(line, places[i].before), *port;
		struct span rest;

		if (!at)
			continue;
		rest = rest_of(line, at + strlen(places[i].before));
		if (!take_host(rest, false, ret))
			continue;
		port = places[i].between ? find(rest, places[i].between) : NULL;
		if (port)
			ret->port = read_port(rest_of(line, port + strlen(places[i].between)));
		return true;
	}
	return false;
}

/* "ping: example.org: Name or service not known" */
static bool find_in_front(struct span line, const char *failure, struct destination *ret)
{
	const char *end = failure, *from;

	if (end - line.data < 3 || end[-1] != ' ' || end[-2] != ':')
		return false;
	end -= 2;
	for (from = end; from > line.data && is_of_host(from[-1]) && from[-1] != ':'; from--)
		;
	return memchr(from, '.', (size_t)(end - from)) &&
	       take_host((struct span){ from, (size_t)(end - from) }, false, ret);
}

/* ("1.1.1.1", 53) and http://example.org:8080, the last of them. */
static bool find_before(struct span text, struct destination *ret)
{
	static const struct {
		const char *before;
		uint16_t port; /* 0: behind the host, as in a tuple */
	} forms[] = { { "(\"", 0 }, { "('", 0 }, { "http://", 80 }, { "https://", 443 } };
	const char *last = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct span rest = text;
		const char *at;

		while ((at = find(rest, forms[i].before))) {
			struct destination found = { 0 };
			size_t n = 0;

			rest = rest_of(text, at + strlen(forms[i].before));
			if (!take_host(rest, false, &found))
				continue;
			while (n < rest.len && is_of_host(rest.data[n]))
				n++;
			if (forms[i].port && !found.port) {
				found.port = forms[i].port;
			} else if (!forms[i].port) {
				while (n < rest.len && strchr("\"', ", rest.data[n]))
					n++;
				found.port = read_port(rest_of(text, rest.data + n));
			}
			if (found.port && (!last || at > last)) {
				last = at;
				*ret = found;
			}
		}
	}
	return last;
}

size_t network_attempts(struct span text, struct network_attempt ret[NETWORK_ATTEMPTS_MAX])
{
	size_t n = 0;

	if (text.len > TEXT_MAX)
		text = rest_of(text, text.data + text.len - TEXT_MAX);
	for (struct span rest = text, line;
	     n < NETWORK_ATTEMPTS_MAX && span_split(&rest, '\n', &line);) {
		struct network_attempt new = { .count = 1 };
		const char *failure = NULL;
		bool found;
		size_t k = 0;

		for (size_t i = 0; i < ARRAY_SIZE(failures) && !failure; i++) {
			failure = find(line, failures[i].words);
			new.lookup = failures[i].lookup;
		}
		if (!failure)
			continue;
		found = find_place(line, &new.destination);
		/* "connect ENETUNREACH 1.1.1.1:53" */
		for (size_t i = 0; i < line.len && !found; i++)
			found = is_of_host(line.data[i]) &&
				(i == 0 || !is_of_host(line.data[i - 1])) &&
				take_host(rest_of(line, line.data + i), true, &new.destination);
		if (!found && !find_in_front(line, failure, &new.destination) &&
		    !find_before((struct span){ text.data, (size_t)(line.data - text.data) },
				 &new.destination))
			new.destination = (struct destination){ 0 };
		while (k < n && (ret[k].destination.port != new.destination.port ||
				 strcmp(ret[k].destination.host, new.destination.host) != 0))
			k++;
		if (k < n)
			ret[k].count++;
		else
			ret[n++] = new;
	}
	/* A runtime tells of one attempt in several lines: those without a destination add nothing to those with one. */
	for (size_t i = 0; n > 1 && i < n; i++)
		if (!*ret[i].destination.host) {
			memmove(&ret[i], &ret[i + 1], (n - i - 1) * sizeof(*ret));
			n--;
		}
	return n;
}
