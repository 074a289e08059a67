/* SPDX-License-Identifier: Apache-2.0 */
/* Events as they happen: order, latency, resuming, slow watchers, input and signals; callbacks to a listener of our own. */
#include "engine/test-reader.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void test_stream(void **state)
{
	struct submitter c;
	struct event_reader live, late;

	(void)state;
	assert_int_equal(submit(&c, SH("echo one; echo two >&2; sleep 2.5; echo three"), announced),
			 0);
	watch(&live, execution_id(c.x), NULL);
	pull(&live);
	run_until(&live.over);
	assert_kinds(&live, "start stage result ");
	assert_non_null(strstr(live.kinds.data, "start usage "));
	assert_string_equal(live.bytes[0].data, "one\nthree\n");
	assert_string_equal(live.bytes[1].data, "two\n");
	/* From the hook to the watcher in the same turn of the loop, not with what is printed next. */
	assert_true(live.first_byte_ns < NS_PER_SEC);
	run_until(&c.ended);
	/* The same from the history. */
	watch(&late, execution_id(c.x), NULL);
	client_done(&c);
	pull(&late);
	assert_true(late.over);
	assert_string_equal(late.kinds.data, live.kinds.data);
	assert_int_equal(late.n, live.n);
	assert_string_equal(late.bytes[0].data, "one\nthree\n");
	assert_string_equal(late.bytes[1].data, "two\n");
	reader_done(&live);
	reader_done(&late);
}

/* Left in the middle, back while it runs and back long after it ended: the rest, once. */
static void test_resume(void **state)
{
	struct submitter c;
	struct event_reader first, live, dead;
	char id[HISTORY_ID];

	(void)state;
	assert_int_equal(
		submit(&c, SH("for i in 1 2 3 4 5 6; do echo $i; echo e$i >&2; sleep 0.05; done"),
		       announced),
		0);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	watch(&first, id, "");
	first.pause_after = 5;
	pull(&first);
	for (int i = 0; i < 8000 && !first.paused; i++)
		run_for_ms(5);
	assert_true(first.paused);
	watch(&live, id, first.last_id);
	pull(&live);
	run_until(&live.over);
	run_until(&c.ended);
	client_done(&c);
	reader_done(&live);
	first.watcher = watcher_free(first.watcher);
	assert_null(engine_find(fix.engine, NULL, id));

	watch(&dead, id, first.last_id);
	dead.bytes[0] = first.bytes[0];
	dead.bytes[1] = first.bytes[1];
	first.bytes[0] = first.bytes[1] = (struct buf){ 0 };
	pull(&dead);
	assert_true(dead.over);
	assert_string_equal(dead.bytes[0].data, "1\n2\n3\n4\n5\n6\n");
	assert_string_equal(dead.bytes[1].data, "e1\ne2\ne3\ne4\ne5\ne6\n");
	assert_kinds(&dead, "stage result ");
	/* A reader that has the result gets nothing more. */
	watch(&live, id, dead.last_id);
	pull(&live);
	assert_true(live.over);
	assert_int_equal(live.n, 0);
	reader_done(&live);
	reader_done(&dead);
	reader_done(&first);
	assert_int_equal(engine_watch(fix.engine, "test", (struct engine_place){ id, "nonsense" },
				      &live.watcher, NULL),
			 -EINVAL);
	assert_int_equal(engine_watch(fix.engine, "other", (struct engine_place){ id, NULL },
				      &live.watcher, NULL),
			 -ENOENT);
}

/* One that does not read: the program and the other watcher are not held up, and it gets all in the end. */
static void test_slow_watcher(void **state)
{
	struct submitter c;
	struct event_reader fast, slow;

	(void)state;
	assert_int_equal(
		submit(&c, SH("head -c 20000000 /dev/zero | tr '\\\\0' y; echo z >&2"), announced),
		0);
	watch(&fast, execution_id(c.x), NULL);
	watch(&slow, execution_id(c.x), NULL);
	slow.pause_after = 2;
	pull(&fast);
	pull(&slow);
	run_until(&fast.over);
	assert_int_equal(fast.bytes[0].len, 20000000);
	assert_true(slow.bytes[0].len < 1 << 20);
	slow.paused = false;
	slow.pause_after = 0;
	pull(&slow);
	assert_true(slow.over);
	assert_int_equal(slow.bytes[0].len, 20000000);
	assert_string_equal(slow.bytes[1].data, "z\n");
	run_until(&c.ended);
	client_done(&c);
	reader_done(&fast);
	reader_done(&slow);
}

/* A character that comes in two writes is one in the stream of text. */
static void test_characters_stay_whole(void **state)
{
	struct submitter c;
	struct event_reader r;

	(void)state;
	assert_int_equal(
		submit(&c,
		       "{\"language\": \"bash\", \"code\": \"printf 'a\\\\303'; sleep 0.1; "
		       "printf '\\\\244b'; sleep 0.1; printf '\\\\342\\\\202'\"}",
		       announced),
		0);
	watch(&r, execution_id(c.x), NULL);
	pull(&r);
	for (int i = 0; i < 8000 && r.bytes[0].len == 0; i++)
		run_for_ms(5);
	/* The rest of it comes with its beginning, should that have been long ago. */
	assert_true(r.bytes[0].len == 1 || r.bytes[0].len >= 3);
	run_until(&r.over);
	assert_string_equal(r.bytes[0].data, "a\xc3\xa4"
					     "b\xe2\x82");
	run_until(&c.ended);
	client_done(&c);
	reader_done(&r);
}

/* What is told without its order is cut between characters, too. */
static void test_characters_in_front(void **state)
{
	struct execution *x = execution_new(fix.engine, "test", NULL);
	struct event_reader r;

	(void)state;
	assert_non_null(x);
	execution_own(x);
	x->state = EXECUTION_RUNNING;
	for (int i = 0; i < 20000; i++)
		assert_int_equal(spool_append(&x->stream.spools[0], "\342\202\254", 3), 3);
	assert_int_equal(
		events_replay(&x->stream.events, (const int64_t[]){ 60000, 0 }, -EBADF, false), 0);
	watch(&r, x->id, NULL);
	pull(&r);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.bytes[0].len, 60000);
	reader_done(&r);
	execution_disown(x);
	(void)execution_unref(x);
}

static void cancel(void *data)
{
	struct submitter *c = data;

	(void)execution_cancel(c->x);
}

/* By a watcher that is told of the start, before the executor has the run. */
static void test_cancel_when_told(void **state)
{
	struct submitter c;
	struct watcher *w;
	struct event ev;

	(void)state;
	assert_int_equal(submit(&c, SH("sleep 20"), announced), 0);
	assert_int_equal(engine_watch(fix.engine, "test",
				      (struct engine_place){ execution_id(c.x), NULL }, &w, NULL),
			 0);
	watcher_set_ops(w, &(struct watcher_ops){ .data = &c, .on_ready = cancel });
	assert_int_equal(watcher_next(w, &ev), 0);
	run_until(&c.ended);
	assert_string_equal(c.status, "cancelled");
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), 0);
	(void)watcher_free(w);
	client_done(&c);
}

static void test_leaving_while_told(void **state)
{
	struct submitter c;
	struct event_reader leaves, stays;

	(void)state;
	assert_int_equal(submit(&c, SH("sleep 0.05; echo x"), announced), 0);
	watch(&stays, execution_id(c.x), NULL);
	watch(&leaves, execution_id(c.x), NULL);
	pull(&stays);
	pull(&leaves);
	leaves.free_at_first = true;
	run_until(&leaves.over);
	run_until(&stays.over);
	assert_string_equal(stays.bytes[0].data, "x\n");
	run_until(&c.ended);
	client_done(&c);
	reader_done(&stays);
	reader_done(&leaves);
}

static void test_input_and_signals(void **state)
{
	struct submission interactive = { .mode = SUBMIT_ANNOUNCED, .interactive = true };
	struct submitter c;
	struct event_reader r;
	ssize_t n;

	(void)state;
	assert_int_equal(submit(&c,
				SH("trap 'echo got; exit 7' USR1; read line; echo =$line; while :; "
				   "do sleep 0.02; done"),
				interactive),
			 0);
	assert_int_equal(execution_stdin_write(c.x, "x", 1), -EAGAIN);
	assert_int_equal(execution_signal(c.x, SIGUSR1), -ESRCH);
	watch(&r, execution_id(c.x), NULL);
	pull(&r);
	for (int i = 0; i < 8000 && !execution_is_running(c.x); i++)
		run_for_ms(5);
	n = execution_stdin_write(c.x, "line\n", 5);
	assert_int_equal(n, 5);
	execution_stdin_close(c.x);
	for (int i = 0; i < 8000 && r.bytes[0].len == 0; i++)
		run_for_ms(5);
	assert_string_equal(r.bytes[0].data, "=line\n");
	assert_int_equal(execution_signal(c.x, 1000), -EINVAL);
	/* Its first words may be here before the news that it has begun. */
	for (int i = 0; i < 8000 && execution_signal(c.x, SIGUSR1) == -ESRCH; i++)
		run_for_ms(5);
	run_until(&r.over);
	assert_string_equal(r.bytes[0].data, "=line\ngot\n");
	run_until(&c.ended);
	assert_int_equal(json_integer_value(json_object_get(c.result, "exit_code")), 7);
	assert_true(execution_stdin_write(c.x, "x", 1) == -EPIPE);
	client_done(&c);
	reader_done(&r);
}

/* A zip with main.sh and lib/say.sh, made by Python's zipfile. */
static void test_archive(void **state)
{
	static const char body[] =
		"{\"language\": \"bash\", \"entry\": \"main.sh\", \"archive\": \""
		"UEsDBBQAAAAAAAAAIQCInbuZFgAAABYAAAAHAAAAbWFpbi5zaC4gbGliL3NheS5zaApzYXkgIiRAIgpQSw"
		"MEFAAAAAAAAAAh"
		"AB8oM/"
		"shAAAAIQAAAAoAAABsaWIvc2F5LnNoc2F5KCkgeyBlY2hvIGZyb20gdGhlIGFyY2hpdmU7IH0KUEsBAhQD"
		"FAAAAAAA"
		"AAAhAIidu5kWAAAAFgAAAAcAAAAAAAAAAAAAAIABAAAAAG1haW4uc2hQSwECFAMUAAAAAAAAACEAHygz+"
		"yEAAAAhAAAACgAA"
		"AAAAAAAAAAAAgAE7AAAAbGliL3NheS5zaFBLBQYAAAAAAgACAG0AAACEAAAAAAA="
		"\"}";
	struct submitter c;

	(void)state;
	assert_int_equal(submit(&c, body, announced), 0);
	run_until(&c.ended);
	assert_string_equal(c.status, "success");
	assert_string_equal(text_at(c.result, "stdout"), "from the archive\n");
	client_done(&c);
}

/* Answers 500 first and 200 then, and keeps the last request. */
struct callback_server {
	int fd, connection;
	struct source *source, *peer;
	int hits;
	struct buf request;
	bool done;
};

static int on_peer(void *data, uint32_t events)
{
	struct callback_server *l = data;
	char bytes[4096];
	ssize_t n = read(l->connection, bytes, sizeof(bytes));
	const char *answer = l->hits == 1 ? "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
					  : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

	(void)events;
	if (n > 0)
		assert_int_equal(buf_append(&l->request, bytes, (size_t)n), 0);
	if (n > 0 && !strstr(l->request.data, "\"node\":"))
		return 0;
	if (n > 0)
		assert_int_equal(fd_write_all(l->connection, answer, strlen(answer)), 0);
	l->peer = source_free(l->peer);
	l->connection = fd_close(l->connection);
	l->done = l->hits == 2;
	loop_stop(fix.loop);
	return 0;
}

static int on_connection(void *data, uint32_t events)
{
	struct callback_server *l = data;

	(void)events;
	l->hits++;
	l->request.len = 0;
	l->connection = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(l->connection >= 0);
	return loop_add_fd(fix.loop, l->connection, EPOLLIN, (struct handler){ on_peer, l },
			   &l->peer);
}

static void test_callback(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", NULL };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	struct callback_server l = { .connection = -EBADF };
	struct submission job = { .mode = SUBMIT_DETACHED };
	struct submitter c;
	char body[256];

	(void)state;
	buf_init(&l.request, 1 << 20);
	l.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(l.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(l.fd, 4), 0);
	assert_int_equal(getsockname(l.fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(loop_add_fd(fix.loop, l.fd, EPOLLIN, (struct handler){ on_connection, &l },
				     &l.source),
			 0);
	(void)snprintf(body, sizeof(body),
		       "{\"language\": \"bash\", \"code\": \"echo hi\", \"callback_url\": "
		       "\"http://127.0.0.1:%d/done?x=1\"}",
		       ntohs(at.sin_port));
	close_engine();
	fix.options.callbacks = true;
	open_history();
	open_engine();
	/* Not listed: a loopback address may not be called. That is found out when it is dialled. */
	assert_int_equal(submit(&c, body, job), 0);
	run_until(&c.accepted);
	client_done(&c);
	while (!engine_is_idle(fix.engine))
		run_for_ms(20);
	assert_int_equal(l.hits, 0);
	assert_int_equal(fix.engine->metrics.posts_failed, 1);
	close_engine();
	fix.options.callback_hosts = hosts;
	open_history();
	open_engine();
	assert_int_equal(submit(&c, body, job), 0);
	run_until(&l.done);
	assert_non_null(strstr(l.request.data, "POST /done?x=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(l.request.data, execution_id(c.x)));
	assert_non_null(strstr(l.request.data, "\"stdout\":\"hi\\n\""));
	client_done(&c);
	while (!engine_is_idle(fix.engine))
		run_for_ms(5);
	assert_int_equal(fix.engine->metrics.posts_sent, 1);
	(void)source_free(l.source);
	(void)fd_close(l.fd);
	buf_done(&l.request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_stream),
		ENGINE_TEST(test_resume),
		ENGINE_TEST(test_slow_watcher),
		ENGINE_TEST(test_characters_stay_whole),
		ENGINE_TEST(test_characters_in_front),
		ENGINE_TEST(test_cancel_when_told),
		ENGINE_TEST(test_leaving_while_told),
		ENGINE_TEST(test_input_and_signals),
		ENGINE_TEST(test_archive),
		ENGINE_TEST(test_callback),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
