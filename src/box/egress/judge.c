/* SPDX-License-Identifier: Apache-2.0 */
/* See judge.h. */
#include "box/egress/judge.h"

#include "box/egress/own.h"

#include <string.h>

void judge_init(struct judge *j, struct relay_book *book)
{
	*j = (struct judge){ .book = book, .left = book->bytes_max ? book->bytes_max : UINT64_MAX };
	(void)pthread_mutex_init(&j->lock, NULL);
}

bool judge_knows_host(const struct judge *j, const char *host)
{
	for (uint32_t i = 0; i < j->book->n_rules; i++)
		if (destination_covers(&j->book->rules[i], host))
			return true;
	return false;
}

bool judge_permits(const struct judge *j, const struct destination *destination)
{
	for (uint32_t i = 0; i < j->book->n_rules; i++)
		if (j->book->rules[i].port == destination->port &&
		    destination_covers(&j->book->rules[i], destination->host))
			return true;
	return false;
}

bool judge_may_dial(const struct judge *j, const struct sockaddr *address, uint16_t port)
{
	char text[ADDRESS_TEXT_MAX];

	if (address_is_public(address) && !address_is_own(address))
		return true;
	address_format(address, text);
	for (uint32_t i = 0; i < j->book->n_rules; i++)
		if ((port == 0 || j->book->rules[i].port == port) &&
		    strcmp(j->book->rules[i].host, text) == 0)
			return true;
	return false;
}

static bool is_same(const struct destination *a, const struct destination *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void judge_refuse(struct judge *j, const struct destination *destination, enum relay_denial reason)
{
	struct relay_book *book = j->book;
	uint32_t i = 0;

	(void)pthread_mutex_lock(&j->lock);
	while (i < book->n_refusals && (book->refusals[i].reason != reason ||
					!is_same(&book->refusals[i].destination, destination)))
		i++;
	if (i == RELAY_DENIALS_MAX) {
		book->refusals_lost++;
	} else {
		if (i == book->n_refusals) {
			book->refusals[i].destination = *destination;
			book->refusals[i].reason = (uint8_t)reason;
			book->n_refusals++;
		}
		book->refusals[i].count++;
	}
	(void)pthread_mutex_unlock(&j->lock);
}

struct relay_row *judge_note(struct judge *j, const struct destination *destination,
			     enum relay_outcome outcome)
{
	struct relay_book *book = j->book;
	struct relay_row *row = NULL;
	uint32_t i = 0;

	(void)pthread_mutex_lock(&j->lock);
	while (i < book->n_rows && (book->rows[i].outcome != outcome ||
				    !is_same(&book->rows[i].destination, destination)))
		i++;
	if (i == RELAY_ROWS_MAX) {
		book->rows_lost++;
	} else {
		row = &book->rows[i];
		if (i == book->n_rows) {
			row->destination = *destination;
			row->outcome = (uint8_t)outcome;
			book->n_rows++;
		}
		row->count++;
	}
	(void)pthread_mutex_unlock(&j->lock);
	return row;
}

bool judge_may_carry(const struct judge *j)
{
	return j->left > 0;
}
