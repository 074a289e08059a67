/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results to a callback_url: libcurl's multi interface on our loop, its sockets as sources, its deadline as a timer. The
 * address that is dialled is judged when the socket is made, behind the resolver, so a name cannot say one thing to a check
 * and another to connect(). No redirects, no proxies, nothing of the answer is kept. What is not taken is tried again a few
 * times, later each time; then it is given up: the result stays readable under its id. A message is signed in place: curl copies
 * (and for https encrypts) the same bytes on this thread.
 *
 * A result is sent at least once. That its callback is due stands in the history, beside its row, until the callback was taken or
 * given up. So a process that was killed leaves it to the next one, which also sends what it had to record as interrupted. An
 * execution without a row is known to this process only.
 */
#include "engine/engine-private.h"

#include "base/address.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "base/parse.h"
#include "engine/callback-sign.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	POSTS_MAX = 256,
	POSTS_BYTES_MAX = 64 << 20,
	RESUME_MS = 1000,
	URL_MAX = 2000,
	ANSWER_MAX = 64 << 10,
	LINE_MAX_BYTES = 4096, /* a signature for each of 64 secrets */
};

struct post {
	struct poster *poster;
	struct post *next;
	struct execution *execution; /* a reference: its text is the body */
	CURL *curl;
	struct curl_slist *headers;
	struct source *retry; /* until the next attempt */
	int64_t attempts;
	size_t answer;
	bool private_ok; /* the administrator named this host */
};

struct poster {
	struct engine *engine;
	CURLM *multi;
	struct source *timer;
	struct post *posts;
	size_t n, bytes;
	int64_t resume_ns; /* monotonic: when the history is next asked for callbacks that are due */
};

struct watched { /* one of curl's sockets */
	struct poster *poster;
	struct source *source;
	curl_socket_t fd;
};

struct target {
	char host[256];
	int port;
};

static int copy_part(CURLU *u, CURLUPart part, char *ret, size_t size)
{
	char *text = NULL;
	int r = 0;

	if (curl_url_get(u, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK || strlen(text) >= size)
		r = -EINVAL;
	else
		memcpy(ret, text, strlen(text) + 1);
	curl_free(text);
	return r;
}

static int parse_target(CURLU *u, const char *url, struct target *ret, struct error *err)
{
	char scheme[16], port[8], password[2], *user = NULL, *host = ret->host;
	int64_t number;
	bool named;

	if (strlen(url) > URL_MAX || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    copy_part(u, CURLUPART_SCHEME, scheme, sizeof(scheme)) < 0 ||
	    copy_part(u, CURLUPART_HOST, host, sizeof(ret->host)) < 0 ||
	    copy_part(u, CURLUPART_PORT, port, sizeof(port)) < 0 || parse_i64(port, &number) < 0)
		return error_field(err, "callback_url",
				   "callback_url: it is no URL, such as https://example.org/hook");
	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		return error_field(err, "callback_url",
				   "callback_url: it is neither http: nor https:");
	named = curl_url_get(u, CURLUPART_USER, &user, 0) != CURLUE_NO_USER;
	curl_free(user);
	if (named || copy_part(u, CURLUPART_PASSWORD, password, sizeof(password)) == 0)
		return error_field(err, "callback_url",
				   "callback_url: it holds a user or a password");
	if (host[0] == '[') {
		memmove(host, host + 1, strlen(host));
		host[strcspn(host, "]")] = '\0';
	}
	ret->port = (int)number;
	return 0;
}

static int judge_url(const struct engine *e, const char *url, bool *ret_private, struct error *err)
{
	CURLU *u = curl_url();
	struct target target;
	struct destination destination;
	enum destination_verdict verdict;
	int r = u ? parse_target(u, url, &target, err) : error_oom(err);

	curl_url_cleanup(u);
	if (r < 0)
		return r;
	/* A host that cannot be read is in no list. */
	if (destination_parse(target.host, &destination) < 0)
		destination.host[0] = '\0';
	destination.port = (uint16_t)target.port;
	verdict = destination_find(e->o.callback_hosts, &destination);
	if (verdict == DESTINATION_UNLISTED && e->o.callback_hosts && e->o.callback_hosts[0])
		return error_refuse(err, "callback_url",
				    "callback_url: its host is not among those that the server's "
				    "callbacks.hosts lists");
	*ret_private = verdict == DESTINATION_LISTED_EXACTLY;
	return 0;
}

int poster_check(const struct engine *e, const char *url, struct error *err)
{
	bool private_ok;

	int r;

	if (!e->o.callbacks) {
		r = error_refuse(
			err, "callback_url",
			"callback_url: this server sends no callbacks: leave it out and ask for "
			"the result, or set callbacks.allow in the server's settings");
		err->code = ERROR_CALLBACKS_OFF;
		return r;
	}
	return judge_url(e, url, &private_ok, err);
}

static curl_socket_t on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	const struct post *post = data;

	(void)purpose;
	if (!post->private_ok && !address_is_public(&address->addr))
		return CURL_SOCKET_BAD;
	return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      address->protocol);
}

static size_t on_answer(char *bytes, size_t size, size_t n, void *data)
{
	struct post *post = data;

	(void)bytes;
	post->answer += size * n;
	return post->answer > ANSWER_MAX ? 0 : size * n;
}

static void post_free(struct post *post)
{
	struct poster *p = post->poster;
	struct post **at = &p->posts;

	while (*at != post)
		at = &(*at)->next;
	*at = post->next;
	p->n--;
	p->bytes -= post->execution->record.result_text.len;
	if (post->curl) {
		(void)curl_multi_remove_handle(p->multi, post->curl);
		curl_easy_cleanup(post->curl);
	}
	curl_slist_free_all(post->headers);
	post->retry = source_free(post->retry);
	(void)execution_unref(post->execution);
	free(post);
}

/* It is no longer due. If the disk does not take that, the callback is sent once more, under the same webhook-id. */
static void settle(const struct execution *x)
{
	if (x->record.row)
		(void)!history_callback_done(x->engine->o.history, x->record.row);
}

static void give_up(struct post *post, const char *why)
{
	struct engine *e = post->poster->engine;

	e->metrics.posts_failed++;
	log_say(e->o.log, LOG_WARNING, "a callback was not taken",
		LOG_TEXT("id", post->execution->id), LOG_TEXT("why", why),
		LOG_I64("attempts", post->attempts));
	settle(post->execution);
	post_free(post);
}

static bool set_options(struct post *post)
{
	const struct engine *e = post->poster->engine;
	struct span body = post->execution->record.result_text;
	CURL *c = post->curl;
	bool ok = true;

	ok = ok && !curl_easy_setopt(c, CURLOPT_URL, post->execution->callback_url);
	ok = ok && !curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	ok = ok && !curl_easy_setopt(c, CURLOPT_PROXY, "");
	ok = ok && !curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	ok = ok && !curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)e->o.callback_timeout_ms);
	/* The end does not wait for a resolver's thread that has no answer yet. */
	ok = ok && !curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
	ok = ok && !curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	ok = ok && !curl_easy_setopt(c, CURLOPT_POSTFIELDS, body.data);
	ok = ok && !curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_answer);
	ok = ok && !curl_easy_setopt(c, CURLOPT_WRITEDATA, post);
	ok = ok && !curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_open);
	ok = ok && !curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, post);
	/* A judged address is judged again for each socket: connections are not kept. */
	ok = ok && !curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	return ok && !curl_easy_setopt(c, CURLOPT_PRIVATE, post);
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
	char line[LINE_MAX_BYTES];
	struct curl_slist *longer;

	(void)snprintf(line, sizeof(line), "%s: %s", name, value);
	longer = curl_slist_append(*list, line);
	if (longer)
		*list = longer;
	return longer;
}

/*
 * The headers of Standard Webhooks: a receiver knows a repeated message by its id and an old one by its timestamp, which is that
 * of the attempt.
 */
static bool make_headers(struct post *post)
{
	const struct execution *x = post->execution;
	const char *const *secrets = x->engine->o.callback_secrets;
	const struct callback_message message = { x->id, clock_realtime_ns() / NS_PER_SEC,
						  x->record.result_text };
	struct curl_slist *list = NULL;
	_cleanup_buf_ struct buf signature = { 0 };
	char time[24];
	bool ok;

	(void)snprintf(time, sizeof(time), "%" PRId64, message.timestamp_s);
	buf_init(&signature, LINE_MAX_BYTES);
	ok = (!secrets || callback_sign(secrets, &message, &signature) == 0) &&
	     add_header(&list, "Content-Type", "application/json") &&
	     add_header(&list, "webhook-id", message.id) &&
	     add_header(&list, "webhook-timestamp", time) &&
	     (signature.len == 0 || add_header(&list, "webhook-signature", signature.data)) &&
	     !curl_easy_setopt(post->curl, CURLOPT_HTTPHEADER, list);
	curl_slist_free_all(ok ? post->headers : list);
	if (ok)
		post->headers = list;
	return ok;
}

static int attempt(void *data, uint32_t events)
{
	struct post *post = data;

	(void)events;
	post->attempts++;
	post->answer = 0;
	if (!make_headers(post) ||
	    curl_multi_add_handle(post->poster->multi, post->curl) != CURLM_OK)
		give_up(post, "out of memory");
	return 0;
}

static void retry(struct post *post, const char *why)
{
	struct engine *e = post->poster->engine;
	int64_t delay_s = 1LL << MIN(post->attempts - 1, (int64_t)6);

	(void)curl_multi_remove_handle(post->poster->multi, post->curl);
	if (post->attempts >= e->o.callback_attempts)
		give_up(post, why);
	else
		source_set_time(post->retry, clock_now_ns() + delay_s * NS_PER_SEC);
}

static void conclude_post(struct post *post, CURLcode code)
{
	long status = 0;
	char why[64];

	(void)curl_easy_getinfo(post->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300) {
		post->poster->engine->metrics.posts_sent++;
		settle(post->execution);
		post_free(post);
		return;
	}
	if (status == 0) {
		retry(post, curl_easy_strerror(code));
		return;
	}
	(void)snprintf(why, sizeof(why), "it answered %ld", status);
	if (status >= 500 || status == 429 || status == 408)
		retry(post, why);
	else
		give_up(post, why);
}

static void collect(struct poster *p)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(p->multi, &left))) {
		struct post *post = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &post);
		conclude_post(post, message->data.result);
	}
}

static int on_socket_event(void *data, uint32_t events)
{
	struct watched *w = data;
	struct poster *p = w->poster;
	int mask = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		   (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
	int running;

	(void)curl_multi_socket_action(p->multi, w->fd, mask, &running);
	collect(p);
	return 0;
}

static int on_post_deadline(void *data, uint32_t events)
{
	struct poster *p = data;
	int running;

	(void)events;
	(void)curl_multi_socket_action(p->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(p);
	return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *data)
{
	struct poster *p = data;

	(void)multi;
	source_set_time(p->timer,
			timeout_ms < 0 ? INT64_MAX : clock_now_ns() + timeout_ms * NS_PER_MS);
	return 0;
}

static void unwatch(struct poster *p, struct watched *w)
{
	if (!w)
		return;
	(void)curl_multi_assign(p->multi, w->fd, NULL);
	w->source = source_free(w->source);
	free(w);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
	struct poster *p = data;
	struct watched *w = socket_data;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		unwatch(p, w);
		return 0;
	}
	if (w)
		return loop_set_events(w->source, events) < 0 ? -1 : 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -1;
	*w = (struct watched){ .poster = p, .fd = fd };
	if (loop_add_fd(p->engine->o.loop, fd, events, (struct handler){ on_socket_event, w },
			&w->source) < 0) {
		free(w);
		return -1;
	}
	(void)curl_multi_assign(p->multi, fd, w);
	return 0;
}

struct poster *poster_new(struct engine *e)
{
	struct poster *p = calloc(1, sizeof(*p));

	if (!p || !e->o.callbacks)
		return p;
	p->engine = e;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		p->multi = curl_multi_init();
	if (!p->multi || curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, on_socket) ||
	    curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p) ||
	    curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, on_timer) ||
	    curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p) ||
	    loop_add_timer(e->o.loop, INT64_MAX, (struct handler){ on_post_deadline, p },
			   &p->timer) < 0)
		return poster_free(p);
	return p;
}

struct poster *poster_free(struct poster *p)
{
	if (!p)
		return NULL;
	while (p->posts)
		post_free(p->posts);
	if (p->multi)
		(void)curl_multi_cleanup(p->multi);
	p->timer = source_free(p->timer);
	free(p);
	return NULL;
}

bool poster_is_idle(const struct poster *p)
{
	return p->n == 0;
}

static struct post *post_new(struct poster *p, struct execution *x, struct error *err)
{
	struct post *post = calloc(1, sizeof(*post));
	int r;

	if (!post) {
		(void)error_oom(err);
		return NULL;
	}
	*post = (struct post){ .poster = p, .next = p->posts, .execution = execution_ref(x) };
	p->posts = post;
	p->n++;
	p->bytes += x->record.result_text.len;
	post->curl = curl_easy_init();
	r = judge_url(p->engine, x->callback_url, &post->private_ok, err);
	if (r == 0 && (!post->curl || !set_options(post) ||
		       loop_add_timer(p->engine->o.loop, INT64_MAX,
				      (struct handler){ attempt, post }, &post->retry) < 0))
		r = error_oom(err);
	if (r < 0) {
		post_free(post);
		return NULL;
	}
	return post;
}

static bool can_post(const struct poster *p, size_t bytes)
{
	return p->n == 0 || (p->n < POSTS_MAX && p->bytes + bytes <= POSTS_BYTES_MAX);
}

void poster_post(struct poster *p, struct execution *x)
{
	const bool room = can_post(p, x->record.result_text.len);
	struct error err = { 0 };
	struct post *post = NULL;

	if (!room && x->record.row)
		return;
	if (!room)
		(void)error_set(&err, ERROR_BUSY, EBUSY, "too many wait already");
	else if (!x->callback_url || !x->record.result_text.data)
		(void)error_set(&err, ERROR_STORAGE, EIO, "its request or result cannot be read");
	else
		post = post_new(p, x, &err);
	if (post) {
		(void)attempt(post, 0);
		return;
	}
	x->engine->metrics.posts_failed++;
	log_say(x->engine->o.log, LOG_WARNING, "a callback was not sent", LOG_TEXT("id", x->id),
		LOG_TEXT("why", err.text));
	settle(x);
}

static bool is_posting(const struct poster *p, const char *id)
{
	for (const struct post *post = p->posts; post; post = post->next)
		if (strcmp(post->execution->id, id) == 0)
			return true;
	return false;
}

/* An ended execution, as far as sending its result needs it. */
static struct execution *read_back(struct engine *e, const struct history_row *row)
{
	struct text_place place = { .history = e->o.history, .id = row->id };
	struct execution *x = execution_new(e, row->caller, row->id);
	_cleanup_history_row_ struct history_row whole = { 0 };
	json_t *body = NULL;
	char *text = NULL;
	int r = x ? history_get(e->o.history, NULL, row->id, &whole) : -ENOMEM;

	if (r < 0)
		return execution_unref(x);
	x->record.row = row->row;
	place.which = HISTORY_REQUEST;
	(void)!text_load_json(&place, &whole.request, &body);
	if (json_is_string(json_object_get(body, "callback_url")))
		x->callback_url = strdup(json_string_value(json_object_get(body, "callback_url")));
	json_decref(body);
	place.which = HISTORY_RESULT;
	if (whole.result && text_load(&place, &whole.result, &text) == 0)
		x->record.result_text = (struct span){ text, strlen(text) };
	return x;
}

void poster_resume(struct poster *p)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	struct engine *e = p->engine;

	if (!p->multi || clock_now_ns() < p->resume_ns || history_health(e->o.history).degraded < 0)
		return;
	p->resume_ns = clock_now_ns() + RESUME_MS * NS_PER_MS;
	/* At most POSTS_MAX of them are being sent already: if there are others, one is on this page. */
	if (history_callbacks(e->o.history, INT64_MIN, (size_t)2 * POSTS_MAX, &page) < 0)
		return;
	for (size_t i = 0; i < page.n && can_post(p, 0); i++) {
		struct execution *x = is_posting(p, page.rows[i].id) ? NULL
								     : read_back(e, &page.rows[i]);

		if (x)
			poster_post(p, x);
		(void)execution_unref(x);
	}
}

/* --- signatures --- */

/* See callback-sign.h: the HMAC-SHA-256 of "ID.TIMESTAMP.BODY". */

enum { PREFIX = sizeof("whsec_") - 1, KEY_TEXT_MAX = 128 };

static int sign_message(const char *secret, const struct span *parts, size_t n, struct buf *ret)
{
	char key[KEY_TEXT_MAX];
	uint8_t mac[SHA256_BYTES];
	size_t text_len = strlen(secret), key_len = 0;
	_cleanup_free_ char *text = NULL;
	int r = text_len > PREFIX && text_len < sizeof(key)
			? base64_decode(secret + PREFIX, text_len - PREFIX, key, &key_len)
			: -EINVAL;

	if (r < 0)
		return r;
	hmac_sha256((struct span){ key, key_len }, parts, n, mac);
	text = base64_encode(mac, sizeof(mac));
	return text ? buf_printf(ret, "%sv1,%s", ret->len > 0 ? " " : "", text) : -ENOMEM;
}

int callback_sign(const char *const *secrets, const struct callback_message *m, struct buf *ret)
{
	char head[64];
	const int n = snprintf(head, sizeof(head), "%s.%" PRId64 ".", m->id, m->timestamp_s);
	const struct span parts[] = { { head, (size_t)n }, m->body };
	int r = n > 0 && (size_t)n < sizeof(head) ? 0 : -EINVAL;

	for (; r == 0 && *secrets; secrets++)
		r = sign_message(*secrets, parts, ARRAY_SIZE(parts), ret);
	return r;
}
