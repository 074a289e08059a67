/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which places a run may reach: those of the request that the policy lists. A place without a port stands for
 * every port that the policy lists for it. An address that is not public must be listed as itself.
 */
#include "policy/places.h"

#include "spec/read.h"

#include <stdio.h>
#include <string.h>

struct place_sink {
	int (*fn)(void *data, const struct place *place);
	void *data;
};

static bool is_private(const struct place *place)
{
	struct sockaddr_storage address;

	return address_parse(place->host, &address) &&
	       !address_is_public((const struct sockaddr *)&address);
}

static bool permits(const struct place *pattern, const struct place *asked)
{
	return is_private(asked) ? strcmp(pattern->host, asked->host) == 0
				 : place_covers(pattern, asked->host);
}

/* The ports of `asked` that one pattern of the policy permits. Adds their number to *n. */
static int give_ports(const struct policy *policy, const struct place *pattern,
		      const struct place *asked, const struct place_sink *to, size_t *n)
{
	const uint16_t *ports = pattern->port ? &pattern->port : policy->network_ports;
	const size_t n_ports = pattern->port ? 1 : policy->n_network_ports;
	struct place place = *asked;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_ports; i++) {
		if (asked->port && asked->port != ports[i])
			continue;
		place.port = ports[i];
		r = to->fn(to->data, &place);
		(*n)++;
	}
	return r;
}

static int refuse_place(const struct decision *d, const char *text, struct error *err)
{
	int r = error_set(
		err, ERROR_POLICY, EPERM,
		"network: policy '%s' does not list '%s'; leave it out, or list it in the "
		"policy's network.allow",
		d->policy->name, quote_text(text).text);

	if (err)
		(void)snprintf(err->field, sizeof(err->field), "network");
	return r;
}

/* One entry of the request, against every entry of the policy. */
static int give_asked(const struct decision *d, const char *text, const struct place_sink *to,
		      struct error *err)
{
	struct place asked, pattern;
	size_t n = 0;
	int r = place_parse(text, &asked);

	for (const char **at = d->policy->network_allow; r == 0 && at && *at; at++)
		if (place_parse(*at, &pattern) == 0 && permits(&pattern, &asked))
			r = give_ports(d->policy, &pattern, &asked, to, &n);
	return r == 0 && n == 0 ? refuse_place(d, text, err) : r;
}

/* Every entry of the policy. */
static int give_all(const struct decision *d, const struct place_sink *to)
{
	struct place pattern;
	size_t n = 0;
	int r = 0;

	for (const char **at = d->policy->network_allow; r == 0 && at && *at; at++)
		if (place_parse(*at, &pattern) == 0)
			r = give_ports(d->policy, &pattern, &pattern, to, &n);
	return r;
}

static int give_places(const struct decision *d, const struct place_sink *to, struct error *err)
{
	const char **asked = d->request->network_places;
	int r = 0;

	if (d->request->network != NETWORK_ALLOW)
		return 0;
	if (!asked)
		return give_all(d, to);
	for (; r == 0 && *asked; asked++)
		r = give_asked(d, *asked, to, err);
	return r;
}

int decision_each_place(const struct decision *d, int (*fn)(void *data, const struct place *place),
			void *data)
{
	return give_places(d, &(struct place_sink){ fn, data }, NULL);
}

/* The bounds of one run. */
struct tally {
	size_t n;
	uint16_t ports[NETWORK_PORTS_MAX];
	size_t n_ports;
};

static int count_place(void *data, const struct place *place)
{
	struct tally *t = data;
	size_t i = 0;

	while (i < t->n_ports && t->ports[i] != place->port)
		i++;
	if (++t->n > NETWORK_RULES_MAX || i == NETWORK_PORTS_MAX)
		return -E2BIG;
	if (i == t->n_ports)
		t->ports[t->n_ports++] = place->port;
	return 0;
}

int places_check(const struct decision *d, struct error *err)
{
	struct tally tally = { .n = 0 };
	int r = give_places(d, &(struct place_sink){ count_place, &tally }, err);

	if (r == -E2BIG)
		r = error_field(
			err, "network",
			"network: one run may reach %d places at %d different ports; name fewer",
			NETWORK_RULES_MAX, NETWORK_PORTS_MAX);
	return r;
}
