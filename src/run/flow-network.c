/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run did on the network, from its relay's book (plan/relay-book.h) into the result: `network` lists connections,
 * `denials` what was refused and which request would permit it. A run without a network has no relay: what it tried is read from
 * its error messages, and the row says so.
 */
#include "run/run.h"

#include "base/utf8.h"
#include "plan/relay-book.h"
#include "run/analyse/network-words.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void destination_text(const struct destination *destination, char *ret, size_t size)
{
	const bool six = strchr(destination->host, ':');

	if (destination->port)
		(void)snprintf(ret, size, "%s%s%s:%u", six ? "[" : "", destination->host,
			       six ? "]" : "", destination->port);
	else
		(void)snprintf(ret, size, "%s", destination->host);
}

static json_t *connection_json(const struct relay_row *row)
{
	static const char *const outcomes[_RELAY_OUTCOME_MAX] = {
		[RELAY_CONNECTED] = "connected",
		[RELAY_REFUSED] = "refused",
		[RELAY_UNREACHABLE] = "unreachable",
		[RELAY_TIMED_OUT] = "timed_out",
	};

	return json_pack("{s:s, s:i, s:s, s:I, s:I, s:I}", "host", row->destination.host, "port",
			 row->destination.port, "outcome", outcomes[row->outcome], "count",
			 (json_int_t)row->count, "sent", (json_int_t)row->sent, "received",
			 (json_int_t)row->received);
}

static json_t *denial_json(const struct local_run *run, const struct relay_refusal *refusal)
{
	static const struct {
		const char *rule, *hint; /* hint NULL: a request for this destination */
	} texts[_RELAY_DENIAL_MAX] = {
		[RELAY_NOT_LISTED] = { NULL, NULL },
		[RELAY_NOT_PUBLIC] = { "network: public addresses only",
				       "list the address itself in the policy's network.allow" },
		[RELAY_OVER_BYTES] = { "network.bytes of the policy",
				       "raise network.bytes in the policy" },
		[RELAY_TOO_MANY] = { "network: names of one run",
				     "look up fewer names in one run" },
	};
	char destination[HOST_NAME_MAX_BYTES + 16], what[sizeof(destination) + 16],
		hint[sizeof(destination) + 24];
	const char *asked = run->request->network_text;
	char rule[128];

	destination_text(&refusal->destination, destination, sizeof(destination));
	(void)snprintf(what, sizeof(what), "%s %s",
		       refusal->destination.port ? "connect" : "lookup", destination);
	(void)snprintf(hint, sizeof(hint), "--network allow:%s", destination);
	(void)snprintf(rule, sizeof(rule), "network: %.100s", asked ? asked : "");
	return json_pack("{s:s, s:s, s:I, s:s}", "what", what, "rule",
			 texts[refusal->reason].rule ? texts[refusal->reason].rule : rule, "count",
			 (json_int_t)refusal->count, "hint",
			 texts[refusal->reason].hint ? texts[refusal->reason].hint : hint);
}

static bool is_text(const struct destination *destination)
{
	const size_t n = strnlen(destination->host, sizeof(destination->host));

	return n < sizeof(destination->host) && utf8_is_valid(destination->host, n);
}

/* The relay spoke with hostile programs: nothing in its book is believed unchecked. */
static bool is_sound(const struct relay_book *book)
{
	if (book->n_rows > RELAY_ROWS_MAX || book->n_refusals > RELAY_DENIALS_MAX)
		return false;
	for (uint32_t i = 0; i < book->n_rows; i++)
		if (!is_text(&book->rows[i].destination) ||
		    book->rows[i].outcome >= _RELAY_OUTCOME_MAX)
			return false;
	for (uint32_t i = 0; i < book->n_refusals; i++)
		if (!is_text(&book->refusals[i].destination) ||
		    book->refusals[i].reason >= _RELAY_DENIAL_MAX)
			return false;
	return true;
}

static int append_book(const struct local_run *run, const struct relay_book *book)
{
	struct result *res = run->result;
	int r = 0;

	res->network_omitted += book->rows_lost;
	res->denials_omitted += book->refusals_lost;
	for (uint32_t i = 0; r == 0 && i < book->n_rows; i++)
		r = json_array_append_new(res->network, connection_json(&book->rows[i]));
	for (uint32_t i = 0; r == 0 && i < book->n_refusals; i++)
		r = json_array_append_new(res->denials, denial_json(run, &book->refusals[i]));
	return r;
}

static void unmap_book(const struct relay_book *book)
{
	if (book != MAP_FAILED)
		(void)munmap((void *)(uintptr_t)book, sizeof(*book));
}

/* NULL: it is not there, or not sound. */
static const struct relay_book *map_book(int fd)
{
	const struct relay_book *book;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(*book))
		return NULL;
	book = mmap(NULL, sizeof(*book), PROT_READ, MAP_PRIVATE, fd, 0);
	if (book != MAP_FAILED && is_sound(book))
		return book;
	unmap_book(book);
	return NULL;
}

static json_t *attempt_json(const struct network_attempt *attempt, const char *mode)
{
	char destination[HOST_NAME_MAX_BYTES + 16], what[sizeof(destination) + 16],
		hint[sizeof(destination) + 24], rule[32];
	struct destination named = attempt->destination;

	destination_text(&named, destination, sizeof(destination));
	(void)snprintf(hint, sizeof(hint), "--network allow:%s",
		       *named.host ? destination : "HOST:PORT");
	if (attempt->lookup)
		named.port = 0;
	destination_text(&named, destination, sizeof(destination));
	(void)snprintf(what, sizeof(what), "%s%s%s", attempt->lookup ? "lookup" : "connect",
		       *named.host ? " " : "", destination);
	(void)snprintf(rule, sizeof(rule), "network: %s", mode);
	return json_pack("{s:s, s:s, s:I, s:s, s:s}", "what", what, "rule", rule, "count",
			 (json_int_t)attempt->count, "hint", hint, "source", "program");
}

int flow_take_attempts(struct local_run *run)
{
	const char *const mode = run->decision.network == NETWORK_NONE	? "none"
				 : run->decision.network == NETWORK_OFF ? "off"
									: NULL;
	const struct result_stream *s = run->request->merge_stderr ? &run->result->out
								   : &run->result->err;
	struct network_attempt attempts[NETWORK_ATTEMPTS_MAX];
	size_t n = mode && s->len > 0 ? network_attempts((struct span){ s->text, s->len }, attempts)
				      : 0;
	int r = 0;

	if (n > 0 && !run->result->denials)
		run->result->denials = json_array();
	for (size_t i = 0; i < n && r == 0; i++)
		r = json_array_append_new(run->result->denials, attempt_json(&attempts[i], mode));
	return r < 0 ? -ENOMEM : 0;
}

int flow_take_network(struct local_run *run, const struct job_outcome *o)
{
	struct result *res = run->result;
	const struct relay_book *book;
	int r;

	if (run->decision.network != NETWORK_ALLOW)
		return 0;
	res->network = res->network ? res->network : json_array();
	res->denials = res->denials ? res->denials : json_array();
	if (!res->network || !res->denials)
		return -ENOMEM;
	book = map_book(o->book_fd);
	if (!book) {
		res->network_omitted++;
		return 0;
	}
	r = append_book(run, book);
	unmap_book(book);
	return r < 0 ? -ENOMEM : 0;
}
