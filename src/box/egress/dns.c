/* SPDX-License-Identifier: Apache-2.0 */
/* See dns.h. */
#include "box/egress/dns.h"

#include <string.h>

enum {
	HEADER = 12,
	LABEL_MAX = 63,
	NAME_MAX_BYTES = 255,
	QUESTION_END = 4,
	ANSWER = 16,
	TTL_S = 300
};

static uint16_t read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void write16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The length of the name at the start of n bytes, or 0. A first question needs no pointers. */
static size_t name_len(const uint8_t *at, size_t n)
{
	size_t len = 0;

	while (len < n && at[len] != 0) {
		if (at[len] > LABEL_MAX)
			return 0;
		len += at[len] + 1U;
	}
	return len < n && len < NAME_MAX_BYTES ? len + 1 : 0;
}

/* "" if the name is none that a rule could list. */
static void read_host(const uint8_t *at, char ret[HOST_NAME_MAX_BYTES + 1])
{
	char text[NAME_MAX_BYTES + 1];
	struct sockaddr_storage address;
	struct destination destination;
	size_t len = 0;

	ret[0] = '\0';
	for (; *at; at += *at + 1) {
		if (len > 0)
			text[len++] = '.';
		memcpy(text + len, at + 1, *at);
		len += *at;
	}
	text[len] = '\0';
	/* The text of an address is no name either, though resolvers take it for one. */
	if (memchr(text, '\0', len) || strpbrk(text, "*:[]") ||
	    destination_parse(text, &destination) < 0 || address_parse(destination.host, &address))
		return;
	memcpy(ret, destination.host, sizeof(destination.host));
}

bool dns_read(const uint8_t *message, size_t len, struct dns_query *ret)
{
	size_t name;

	/* A query (QR and opcode 0) with one question. */
	if (len < HEADER || len > DNS_MESSAGE_MAX || message[2] & 0xf8 || read16(message + 4) != 1)
		return false;
	name = name_len(message + HEADER, len - HEADER);
	if (name == 0 || len - HEADER - name < QUESTION_END ||
	    HEADER + name + QUESTION_END + ANSWER > DNS_MESSAGE_MAX)
		return false;
	ret->len = HEADER + name + QUESTION_END;
	ret->type = read16(message + HEADER + name);
	if (read16(message + HEADER + name + 2) != 1) /* class IN */
		return false;
	read_host(message + HEADER, ret->host);
	return true;
}

size_t dns_write(const uint8_t *message, const struct dns_query *query, enum dns_code code,
		 uint32_t address, uint8_t ret[DNS_MESSAGE_MAX])
{
	const bool has_answer = code == DNS_FOUND && address;
	uint8_t *answer = ret + query->len;

	memcpy(ret, message, query->len);
	ret[2] = (uint8_t)(0x80 | (message[2] & 1)); /* an answer; recursion desired as asked */
	ret[3] = (uint8_t)(0x80 | code);	     /* recursion available */
	write16(ret + 6, has_answer);
	write16(ret + 8, 0);
	write16(ret + 10, 0);
	if (!has_answer)
		return query->len;
	write16(answer, 0xc000 | HEADER); /* the question's name */
	write16(answer + 2, DNS_TYPE_A);
	write16(answer + 4, 1);
	write16(answer + 6, 0);
	write16(answer + 8, TTL_S);
	write16(answer + 10, sizeof(address));
	memcpy(answer + 12, &address, sizeof(address));
	return query->len + ANSWER;
}
