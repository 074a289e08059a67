/* SPDX-License-Identifier: Apache-2.0 */
/* Books of relays as results: what a sound one says, and that of another one nothing is believed. */
#include "plan/relay-book.h"
#include "run/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static struct relay_book book;

static void write_sound_book(void)
{
	memset(&book, 0, sizeof(book));
	book.n_rows = book.n_refusals = 1;
	book.rows_lost = 4;
	book.rows[0] = (struct relay_row){ .destination = { "pypi.org", 443 },
					   .outcome = RELAY_CONNECTED,
					   .count = 2,
					   .sent = 10,
					   .received = 20 };
	book.refusals[0] = (struct relay_refusal){ .destination = { "::1", 80 },
						   .reason = RELAY_NOT_LISTED,
						   .count = 3 };
}

/* The result of a run whose relay left the book, or none. */
static struct result *result_of(bool left)
{
	struct request request = { .network_text = "allow:pypi.org" };
	struct local_run run = { .request = &request,
				 .decision.network = NETWORK_ALLOW,
				 .result = result_new() };
	struct job_outcome outcome = { .book_fd = left ? memfd_create("book", MFD_CLOEXEC)
						       : -EBADF };

	assert_non_null(run.result);
	if (left)
		assert_int_equal(fd_write_all(outcome.book_fd, &book, sizeof(book)), 0);
	assert_int_equal(flow_take_network(&run, &outcome), 0);
	(void)fd_close(outcome.book_fd);
	return run.result;
}

static void a_sound_book_is_told(void **state)
{
	struct result *res;
	json_t *expected = json_pack("[[{s:s, s:i, s:s, s:i, s:i, s:i}], [{s:s, s:s, s:i, s:s}]]",
				     "host", "pypi.org", "port", 443, "outcome", "connected",
				     "count", 2, "sent", 10, "received", 20, "what",
				     "connect [::1]:80", "rule", "network: allow:pypi.org", "count",
				     3, "hint", "--network allow:[::1]:80");

	(void)state;
	write_sound_book();
	res = result_of(true);
	assert_true(json_equal(res->network, json_array_get(expected, 0)));
	assert_true(json_equal(res->denials, json_array_get(expected, 1)));
	assert_int_equal(res->network_omitted, 4);
	json_decref(expected);
	(void)result_free(res);
}

/* The run goes on; its result says that connections are not listed. */
static void assert_nothing_believed(bool left)
{
	struct result *res = result_of(left);

	assert_int_equal(json_array_size(res->network) + json_array_size(res->denials), 0);
	assert_int_equal(res->network_omitted, 1);
	(void)result_free(res);
	write_sound_book();
}

static void other_books_are_not_believed(void **state)
{
	(void)state;
	assert_nothing_believed(false);
	book.n_rows = RELAY_ROWS_MAX + 1;
	assert_nothing_believed(true);
	book.n_refusals = RELAY_DENIALS_MAX + 1;
	assert_nothing_believed(true);
	book.rows[0].outcome = _RELAY_OUTCOME_MAX;
	assert_nothing_believed(true);
	book.refusals[0].reason = _RELAY_DENIAL_MAX;
	assert_nothing_believed(true);
	memset(book.rows[0].destination.host, 'a', sizeof(book.rows[0].destination.host));
	assert_nothing_believed(true);
	book.refusals[0].destination.host[0] = (char)0xff;
	assert_nothing_believed(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_book_is_told),
		cmocka_unit_test(other_books_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
