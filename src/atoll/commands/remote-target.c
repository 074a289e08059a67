/* SPDX-License-Identifier: Apache-2.0 */
/* See remote.h. From an id as it is typed (whole, its beginning, "-1", "last") to the address of an execution. */
#include "atoll/commands/remote.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/uri.h"

enum {
	NEWEST_MAX = 1000,  /* of "-1000": a page of the list */
	WHOLE_ID = 29,	    /* characters of an execution's id: "ex_" and 26 */
	CANDIDATES_MAX = 4, /* that a message names */
	CANDIDATES_BYTES = 160,
};

/* Two or more begin with it. */
static int say_ambiguous(const json_t *list, const char *beginning, struct error *err)
{
	_cleanup_buf_ struct buf names = { .max = CANDIDATES_BYTES };
	const json_t *one;
	size_t i, n = 0;

	json_array_foreach(list, i, one)
	{
		const char *id = text_of(one, "id");

		if (strncmp(id, beginning, strlen(beginning)) != 0)
			continue;
		/* Names that do not fit the sentence are left out. */
		if (n++ < CANDIDATES_MAX)
			(void)!buf_printf(&names, "%s%s", n > 1 ? ", " : "", id);
	}
	return error_set(err, ERROR_INPUT, EEXIST,
			 "several ids begin with '%.40s'; give more of the one you mean: %s%s",
			 beginning, names.data ? names.data : "", n > CANDIDATES_MAX ? ", …" : "");
}

bool remote_is_whole_id(const char *word)
{
	return strlen(word) >= WHOLE_ID;
}

int remote_pick(const json_t *list, const char *beginning, const char **ret, struct error *err)
{
	const char *found = NULL;
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (strncmp(text_of(one, "id"), beginning, strlen(beginning)) != 0)
			continue;
		if (found)
			return say_ambiguous(list, beginning, err);
		found = text_of(one, "id");
	}
	*ret = found;
	return found ? 0 : -ENOENT;
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
		r = error_set(err, ERROR_NOT_FOUND, ENOENT,
			      "there is no execution '%.64s'; `atoll history list` shows those "
			      "there are",
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

/* "last" is 1 and "-3" is 3; 0: it is an id. */
static int64_t age_in_list(const char *id)
{
	int64_t nth;

	if (strcmp(id, "last") == 0)
		return 1;
	return *id == '-' && parse_i64(id + 1, &nth) == 0 && nth <= NEWEST_MAX ? nth : 0;
}

/* Whether the text may be an id: anything else would be another path of the daemon, and an answer about that. */
static bool is_id(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_' && *text != '-')
			return false;
	return true;
}

int remote_target(const struct remote *remote, const char *id, const char *rest,
		  struct remote_target *ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	int64_t nth = age_in_list(id);
	int r = 0;

	buf_init(&text, sizeof(ret->text) - 1);
	if (nth > 0)
		r = newest_id(remote, nth, ret, err);
	else if (strlen(id) >= sizeof(ret->id) || !*id || !is_id(id))
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "'%.100s' is no id of an execution; `atoll history list` shows them",
			      id);
	else if (strncmp(id, "ex_", 3) == 0 && !remote_is_whole_id(id))
		r = find_by_beginning(remote, id, ret, err);
	else
		(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	if (r < 0)
		return r;
	r = buf_puts(&text, "/v1/executions/");
	if (r == 0)
		r = uri_encode(&text, span_of(ret->id));
	if (r == 0)
		r = buf_puts(&text, rest);
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "'%.100s' is too long", id);
	(void)snprintf(ret->text, sizeof(ret->text), "%s", text.data);
	return 0;
}
