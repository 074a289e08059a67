/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See remote.h. From an id as it is typed (whole, its beginning, "-1", "last", a session's name) to an address of the daemon, and what
 * commands have in common that ask about such objects: one request, or one for each id.
 */
#include "atoll/commands/remote.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/uri.h"

enum {
	NEWEST_MAX = 1000,  /* of "-1000": a page of the list */
	WHOLE_ID = 29,	    /* characters of an execution's id: "ex_" and 26 */
	CANDIDATES_MAX = 4, /* that a message names */
	CANDIDATES_BYTES = 160,
};

static const struct option ask_rows[] = { ASK_CONFIRM, ASK_ROWS };
const struct option_list ask_options = { .rows = ask_rows + 2, .n = 2 };
const struct option_list ask_options_ids = { .rows = ask_rows + 2, .n = 2, .words = "ids" };
const struct option_list ask_options_remove = { OPTION_ROWS(ask_rows), .words = "ids" };
const struct option_list options_none = { .n = 0 };

int remote_locate(struct invocation *in, struct error *err)
{
	const char *word = in->args.argv[0];
	int r;

	if (in->args.rest < in->args.argc)
		return error_set(err, ERROR_INPUT, EINVAL, "'%s' takes nothing after --", word);
	r = remote_find(in->ask->url, &in->ask->remote, err);
	if (r < 0 && err->code == ERROR_NONE)
		r = error_set(err, ERROR_INPUT, ENOENT,
			      "'%s' asks a daemon, and no address of one is given (`off` means "
			      "none); name it with --url or ATOLL_URL",
			      word);
	return r;
}

bool remote_has_ids(const struct invocation *in)
{
	static const char *const wanted[] = { "", "at least one id", "one id", "two ids" };
	const struct command *c = in->command;
	size_t n = in->args.n_words;

	if (c->ids == IDS_ANY || (c->ids == IDS_SOME && n > 0) || (c->ids == IDS_ONE && n == 1) ||
	    (c->ids == IDS_TWO && n == 2))
		return true;
	say("`atoll %s %s` takes %s, not %zu; `atoll %s list` shows ids", c->name, c->usage,
	    wanted[c->ids], n, strncmp(c->name, "session", 7) == 0 ? "session" : "history");
	return false;
}

bool remote_is_whole_id(const char *word)
{
	return strlen(word) >= WHOLE_ID;
}

/* The one of a list of {"id"} that begins so, borrowed. -ENOENT without a message: none; -EEXIST: several, which the message names. */
static int remote_pick(const json_t *list, const char *beginning, const char **ret,
		       struct error *err)
{
	_cleanup_buf_ struct buf names = { .max = CANDIDATES_BYTES };
	const json_t *one;
	size_t i, n = 0;

	json_array_foreach(list, i, one)
	{
		const char *id = text_of(one, "id");

		if (strncmp(id, beginning, strlen(beginning)) != 0)
			continue;
		*ret = id;
		/* Names that do not fit the sentence are left out. */
		if (n++ < CANDIDATES_MAX)
			(void)!buf_printf(&names, "%s%s", n > 1 ? ", " : "", id);
	}
	if (n > 1)
		return error_set(
			err, ERROR_INPUT, EEXIST,
			"several ids begin with '%.40s'; give more of the one you mean: %s%s",
			beginning, names.data ?: "", n > CANDIDATES_MAX ? ", …" : "");
	return n == 1 ? 0 : -ENOENT;
}

/* The execution whose id begins with the word. */
static int find_by_beginning(const struct remote *remote, const char *word,
			     struct remote_target *ret, struct error *err)
{
	_cleanup_buf_ struct buf target = { .max = sizeof(ret->text) };
	struct http_call call = { .method = HTTP_GET };
	const char *id = NULL;
	json_t *page = NULL;
	int r = buf_puts(&target, "/v1/executions?limit=5&id=");

	if (r == 0)
		r = uri_encode(&target, span_of(word));
	if (r < 0)
		return error_oom(err);
	call.target = target.data;
	r = remote_json(remote, &call, &page, err);
	if (r < 0)
		return r;
	r = remote_pick(json_object_get(page, "executions"), word, &id, err);
	if (r == -ENOENT)
		r = error_set(
			err, ERROR_NOT_FOUND, ENOENT,
			"there is no execution '%.64s'; `atoll history list` shows those there are",
			word);
	if (r == 0)
		(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	json_decref(page);
	return r;
}

/* The nth newest execution; 1: the last. */
static int newest_id(const struct remote *remote, int64_t nth, struct remote_target *ret,
		     struct error *err)
{
	char target[64];
	const struct http_call call = { .method = HTTP_GET, .target = target };
	json_t *page = NULL;
	const char *id;
	int r;

	(void)snprintf(target, sizeof(target), "/v1/executions?limit=%lld", (long long)nth);
	r = remote_json(remote, &call, &page, err);
	if (r < 0)
		return r;
	id = json_string_value(json_object_get(
		json_array_get(json_object_get(page, "executions"), (size_t)nth - 1), "id"));
	if (!id && json_array_size(json_object_get(page, "executions")) == 0)
		r = error_set(err, ERROR_INPUT, ENOENT,
			      "the history is empty; run a program first");
	else if (!id)
		r = error_set(err, ERROR_INPUT, ENOENT,
			      "the history has fewer than %lld executions", (long long)nth);
	else
		(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	json_decref(page);
	return r;
}

/* "/v1/executions/" or the like, the encoded id, and the rest. */
static int remote_build(struct remote_target *ret, const char *collection, const char *rest,
			struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = sizeof(ret->text) - 1 };

	if (buf_puts(&text, collection) < 0 || uri_encode(&text, span_of(ret->id)) < 0 ||
	    buf_puts(&text, rest) < 0)
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "'%.100s' is too long", rest);
	(void)snprintf(ret->text, sizeof(ret->text), "%s", text.data);
	return 0;
}

int remote_target(const struct remote *remote, const char *id, const char *rest,
		  struct remote_target *ret, struct error *err)
{
	/* Anything else would be another path of the daemon, and an answer about that. */
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	int64_t nth = 0;
	int r = 0;

	if (strcmp(id, "last") == 0)
		nth = 1;
	else if (*id != '-' || parse_i64(id + 1, &nth) < 0 || nth > NEWEST_MAX)
		nth = 0;
	if (nth > 0)
		r = newest_id(remote, nth, ret, err);
	else if (strlen(id) >= sizeof(ret->id) || !*id || id[strspn(id, letters)])
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "'%.100s' is no id of an execution; `atoll history list` shows them",
			      id);
	else if (strncmp(id, "ex_", 3) == 0 && !remote_is_whole_id(id))
		r = find_by_beginning(remote, id, ret, err);
	else
		(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	return r < 0 ? r : remote_build(ret, "/v1/executions/", rest, err);
}

/* --- sessions --- */

int session_missing(const char *word, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, ENOENT,
			 "there is no session '%.64s'; `atoll session list` shows those there are",
			 word);
}

/* Looks for a name, or the beginning of an id, among the sessions of the daemon, which come newest first. */
static int find_session(const struct remote *remote, const char *word, char *ret, size_t size,
			struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/sessions" };
	bool newest = strcmp(word, "last") == 0, is_id = strncmp(word, "se_", 3) == 0;
	json_t *page = NULL, *one;
	const char *id = NULL;
	size_t i;
	int r = remote_json(remote, &call, &page, err);

	if (r < 0)
		return r;
	if (is_id)
		r = remote_pick(json_object_get(page, "sessions"), word, &id, err);
	json_array_foreach(json_object_get(page, "sessions"), i, one)
	{
		if (!id && !is_id && (newest || strcmp(text_of(one, "name"), word) == 0))
			id = text_of(one, "id");
	}
	if (id)
		(void)snprintf(ret, size, "%s", id);
	else if (r == 0 || r == -ENOENT)
		r = session_missing(word, err);
	json_decref(page);
	return r;
}

int session_target(const struct remote *remote, const char *word, const char *rest,
		   struct remote_target *ret, struct error *err)
{
	int r = 0;

	if (strncmp(word, "se_", 3) != 0 || !remote_is_whole_id(word))
		r = find_session(remote, word, ret->id, sizeof(ret->id), err);
	else if (strlen(word) >= sizeof(ret->id))
		r = session_missing(word, err);
	else
		(void)snprintf(ret->id, sizeof(ret->id), "%s", word);
	return r < 0 ? r : remote_build(ret, "/v1/sessions/", rest, err);
}

/* --- one request --- */

int remote_ask(const struct remote *remote, const struct remote_question *q, json_t **ret,
	       struct error *err)
{
	struct remote_target target;
	struct http_call call = q->call;
	int r = 0;

	assert(q->rest && (q->of == OBJECT_NONE || q->word));
	call.target = q->of == OBJECT_NONE ? q->rest : target.text;
	if (q->of == OBJECT_SESSION)
		r = session_target(remote, q->word, q->rest, &target, err);
	else if (q->of == OBJECT_EXECUTION)
		r = remote_target(remote, q->word, q->rest, &target, err);
	if (r == 0)
		r = remote_json(remote, &call, ret, err);
	if (r < 0 && q->of == OBJECT_SESSION && err->code == ERROR_NOT_FOUND)
		return session_missing(q->word, err);
	return r;
}

int remote_show(const struct invocation *in, json_t *answer)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;
	int code = 0;

	if (in->ask->json) {
		code = remote_print_json(answer);
	} else if (in->command->print) {
		in->command->print(&out, answer);
		code = print_page(&out, "the answer");
	}
	json_decref(answer);
	return code;
}

int remote_answer(struct invocation *in)
{
	const struct command *c = in->command;
	const struct remote_question q = {
		c->of, in->args.words[0], c->path, { .method = c->method ?: HTTP_GET }
	};
	struct error err = { 0 };
	json_t *answer;

	if (remote_ask(&in->ask->remote, &q, &answer, &err) < 0)
		return say_error(&err);
	return remote_show(in, answer);
}

/* --- one request for each id --- */

int remote_each(struct invocation *in, remote_one_fn one)
{
	const struct ask *ask = in->ask;
	int code = 0;

	for (size_t i = 0; i < in->args.n_words; i++) {
		_cleanup_page_ struct page would = PAGE_EMPTY;
		struct error err = { 0 };
		json_t *answer = NULL;
		int r = one(&ask->remote, in->args.words[i], &answer, &err);

		if (r < 0) {
			code = say_error(&err);
		} else if (ask->json) {
			r = remote_print_json(answer);
		} else if (ask->dry_run) {
			const char *state = text_of(answer, "state");

			page_add_line(&would, "would remove %s (%s)", text_of(answer, "id"),
				      *state ? state : text_of(answer, "status"));
			page_add(&would, "\n");
			r = print_page(&would, "the answer");
		}
		if (r > 0)
			code = EXIT_OURS;
		json_decref(answer);
	}
	return code;
}

int remote_remove_each(struct invocation *in, const struct remote_removal *how)
{
	_cleanup_free_ struct remote_target *targets = calloc(in->args.n_words, sizeof(*targets));
	const size_t n = in->args.n_words;
	char question[120];
	int code = 0, done;

	/* Words that stand for no id are reported and left out. */
	in->args.n_words = 0;
	for (size_t i = 0; i < n; i++) {
		struct error err = { 0 };
		int r = targets ? how->target(&in->ask->remote, in->args.words[i], "", &targets[i],
					      &err)
				: error_oom(&err);

		if (r < 0)
			code = say_error(&err);
		else
			in->args.words[in->args.n_words++] = targets[i].id;
	}
	(void)snprintf(question, sizeof(question), "remove %zu %s?", in->args.n_words, how->things);
	if (in->args.n_words > 1 && !in->ask->dry_run && !in->ask->yes && confirm_can_ask() &&
	    !confirm_ask(question))
		return EXIT_OURS;
	done = remote_each(in, in->ask->dry_run ? how->look : how->remove);
	return done != 0 ? done : code;
}
