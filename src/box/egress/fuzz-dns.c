/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a question: what is read is answered within bounds, and the answer is read as no question. */
#include "box/egress/dns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t answer[DNS_MESSAGE_MAX];
	struct dns_query query, again;
	struct destination destination;
	size_t n;

	if (!dns_read(data, size, &query))
		return 0;
	if (query.host[0] && (destination_parse(query.host, &destination) < 0 ||
			      strcmp(destination.host, query.host) != 0))
		abort();
	n = dns_write(data, &query, DNS_FOUND, 0x0112c6, answer);
	if (n > sizeof(answer) || n < query.len || dns_read(answer, n, &again))
		abort();
	return 0;
}
