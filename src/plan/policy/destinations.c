/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which destinations a run may reach: those of the request that the policy lists. A destination without a port stands for
 * every port that the policy lists for it. An address that is not public must be listed as itself.
 */
#include "plan/policy/destinations.h"

#include "spec/read.h"

#include <stdio.h>
#include <string.h>

struct destination_sink {
	int (*fn)(void *data, const struct destination *destination);
	void *data;
};

static bool is_private(const struct destination *destination)
{
	struct sockaddr_storage address;

	return address_parse(destination->host, &address) &&
	       !address_is_public((const struct sockaddr *)&address);
}

static bool permits(const struct destination *pattern, const struct destination *asked)
{
	return is_private(asked) ? strcmp(pattern->host, asked->host) == 0
				 : destination_covers(pattern, asked->host);
}

/* The ports of `asked` that one pattern of the policy permits. Adds their number to *n. */
static int give_ports(const struct policy *policy, const struct destination *pattern,
		      const struct destination *asked, const struct destination_sink *to, size_t *n)
{
	const uint16_t *ports = pattern->port ? &pattern->port : policy->network_ports;
	const size_t n_ports = pattern->port ? 1 : policy->n_network_ports;
	struct destination destination = *asked;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_ports; i++) {
		if (asked->port && asked->port != ports[i])
			continue;
		destination.port = ports[i];
		r = to->fn(to->data, &destination);
		(*n)++;
	}
	return r;
}

static int refuse_destination(const struct decision *d, const char *text, struct error *err)
{
	return error_refuse(
		err, "network",
		"network: policy '%s' does not list '%s'; leave it out, or list it in the "
		"policy's network.allow",
		d->policy->name, quote_text(text).text);
}

/* One entry of the request, against every entry of the policy. */
static int give_asked(const struct decision *d, const char *text, const struct destination_sink *to,
		      struct error *err)
{
	struct destination asked, pattern;
	size_t n = 0;
	int r = destination_parse(text, &asked);

	for (const char **at = d->policy->network_allow; r == 0 && at && *at; at++)
		if (destination_parse(*at, &pattern) == 0 && permits(&pattern, &asked))
			r = give_ports(d->policy, &pattern, &asked, to, &n);
	return r == 0 && n == 0 ? refuse_destination(d, text, err) : r;
}

/* Every entry of the policy. */
static int give_all(const struct decision *d, const struct destination_sink *to)
{
	struct destination pattern;
	size_t n = 0;
	int r = 0;

	for (const char **at = d->policy->network_allow; r == 0 && at && *at; at++)
		if (destination_parse(*at, &pattern) == 0)
			r = give_ports(d->policy, &pattern, &pattern, to, &n);
	return r;
}

static int give_destinations(const struct decision *d, const struct destination_sink *to,
			     struct error *err)
{
	const char **asked = d->request->network_destinations;
	int r = 0;

	if (d->request->network != NETWORK_ALLOW)
		return 0;
	if (!asked)
		return give_all(d, to);
	for (; r == 0 && *asked; asked++)
		r = give_asked(d, *asked, to, err);
	return r;
}

int decision_each_destination(const struct decision *d,
			      int (*fn)(void *data, const struct destination *destination),
			      void *data)
{
	return give_destinations(d, &(struct destination_sink){ fn, data }, NULL);
}

/* The bounds of one run. */
struct tally {
	size_t n;
	uint16_t ports[NETWORK_PORTS_MAX];
	size_t n_ports;
};

static int count_destination(void *data, const struct destination *destination)
{
	struct tally *t = data;
	size_t i = 0;

	while (i < t->n_ports && t->ports[i] != destination->port)
		i++;
	if (++t->n > NETWORK_RULES_MAX || i == NETWORK_PORTS_MAX)
		return -E2BIG;
	if (i == t->n_ports)
		t->ports[t->n_ports++] = destination->port;
	return 0;
}

int destinations_check(const struct decision *d, struct error *err)
{
	struct tally tally = { .n = 0 };
	int r = give_destinations(d, &(struct destination_sink){ count_destination, &tally }, err);

	if (r == -E2BIG)
		r = error_field(err, "network",
				"network: one run may reach %d destinations at %d different ports; "
				"name fewer",
				NETWORK_RULES_MAX, NETWORK_PORTS_MAX);
	return r;
}
