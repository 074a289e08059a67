/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Two executions side by side. Members that are equal are said to be so by being there with the
 * same value twice (status, exit code, usage) or by being absent (keys of the requests); texts are line diffs.
 */
#include "engine/history/history.h"

#include <string.h>

#include "base/buf.h"
#include "engine/history/linediff.h"
#include "spec/utf8-json.h"

enum {
	TEXT_MAX = 64 << 10, /* of one line diff */
	VALUE_MAX = 4 << 10, /* bytes of one value of a request as shown */
	FILES_MAX = 200,     /* in each list */
};

struct comparison {
	json_t *root;
	bool same;
};

static json_t *diff_known(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return value ? json_incref(value) : json_null();
}

static void diff_add_pair(struct comparison *c, const struct history_side *a,
			  const struct history_side *b, const char *key)
{
	json_t *left = diff_known(a->result, key), *right = diff_known(b->result, key);

	if (!json_equal(left, right))
		c->same = false;
	(void)json_object_set_new(c->root, key, json_pack("{s:o, s:o}", "a", left, "b", right));
}

static struct span diff_text_of(const json_t *value)
{
	return (struct span){ json_string_value(value), json_string_length(value) };
}

/* {"same", "added", "removed", "diff", "truncated"}; NULL: no memory. */
static json_t *diff_texts(struct span a, struct span b)
{
	_cleanup_buf_ struct buf text = { .max = TEXT_MAX };
	struct linediff d = { 0 };
	bool same = a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);

	if (!same && linediff(a, b, &text, &d) < 0)
		return NULL;
	return json_pack("{s:b, s:I, s:I, s:o, s:b}", "same", same, "added", (json_int_t)d.added,
			 "removed", (json_int_t)d.removed, "diff",
			 utf8_to_json(text.data, text.len, NULL), "truncated", d.truncated);
}

static void diff_add_stream(struct comparison *c, const struct history_side *a,
			    const struct history_side *b, const char *key)
{
	json_t *diff = diff_texts(diff_text_of(json_object_get(a->result, key)),
				  diff_text_of(json_object_get(b->result, key)));

	if (!json_is_true(json_object_get(diff, "same")))
		c->same = false;
	(void)json_object_set_new(c->root, key, diff);
}

/* Two runs never take equally long: numbers of usage do not make them different. */
static json_t *diff_usage(const struct history_side *a, const struct history_side *b)
{
	static const char *const keys[] = { "duration", "cpu_time", "memory_peak" };
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *left = diff_known(a->result, keys[i]),
		       *right = diff_known(b->result, keys[i]);
		json_t *delta = json_null();

		if (json_is_integer(left) && json_is_integer(right))
			delta = json_integer(json_integer_value(right) - json_integer_value(left));
		else if (json_is_number(left) && json_is_number(right))
			delta = json_real(json_number_value(right) - json_number_value(left));
		(void)json_object_set_new(
			all, keys[i],
			json_pack("{s:o, s:o, s:o}", "a", left, "b", right, "delta", delta));
	}
	return all;
}

static const json_t *diff_find_file(const json_t *files, const char *path)
{
	size_t i;
	const json_t *file;

	json_array_foreach(files, i, file)
	{
		const char *name = json_string_value(json_object_get(file, "path"));

		if (name && strcmp(name, path) == 0)
			return file;
	}
	return NULL;
}

/* Names of `files` that are not in `others`, or whose contents differ when both is true. */
static json_t *diff_list_files(const json_t *files, const json_t *others, bool both)
{
	json_t *list = json_array();
	const json_t *file;
	size_t i;

	json_array_foreach(files, i, file)
	{
		json_t *path = json_object_get(file, "path");
		const json_t *other;
		bool differs;

		if (!json_is_string(path) || json_array_size(list) == FILES_MAX)
			continue;
		other = diff_find_file(others, json_string_value(path));
		differs = other && !json_equal(json_object_get(file, "sha256"),
					       json_object_get(other, "sha256"));
		if (both ? differs : !other)
			(void)json_array_append(list, path);
	}
	return list;
}

static void diff_add_files(struct comparison *c, const struct history_side *a,
			   const struct history_side *b)
{
	const json_t *left = json_object_get(a->result, "files");
	const json_t *right = json_object_get(b->result, "files");
	json_t *added = diff_list_files(right, left, false),
	       *removed = diff_list_files(left, right, false);
	json_t *changed = diff_list_files(left, right, true);

	if (json_array_size(added) + json_array_size(removed) + json_array_size(changed) > 0)
		c->same = false;
	(void)json_object_set_new(c->root, "files",
				  json_pack("{s:o, s:o, s:o}", "added", added, "removed", removed,
					    "changed", changed));
}

/* A value of a request; what is large is only said to be there. */
static json_t *diff_shown(const json_t *value)
{
	size_t bytes = value ? json_dumpb(value, NULL, 0, JSON_ENCODE_ANY) : 0;

	if (!value)
		return json_null();
	if (bytes > VALUE_MAX)
		return json_pack("{s:I}", "bytes", (json_int_t)bytes);
	return json_deep_copy(value);
}

static void diff_add_key(json_t *changes, const char *key, const json_t *a, const json_t *b)
{
	json_t *change;

	/* jansson compares without changing; its parameters are not const. */
	if ((!a && !b) || (a && b && json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b)) ||
	    json_object_get(changes, key))
		return;
	if (strcmp(key, "code") == 0)
		change = diff_texts(diff_text_of(a), diff_text_of(b));
	else
		change = json_pack("{s:o, s:o}", "a", diff_shown(a), "b", diff_shown(b));
	(void)json_object_set_new(changes, key, change);
}

static void diff_add_request(struct comparison *c, const struct history_side *a,
			     const struct history_side *b)
{
	const struct history_side *sides[] = { a, b };
	json_t *changes = json_object(), *value;
	const char *key;

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
		json_object_foreach((json_t *)(uintptr_t)sides[i]->request, key, value)
		{
			(void)value;
			diff_add_key(changes, key, json_object_get(a->request, key),
				     json_object_get(b->request, key));
		}
	if (json_object_size(changes) > 0)
		c->same = false;
	(void)json_object_set_new(c->root, "request", changes);
}

json_t *history_diff(const struct history_side *a, const struct history_side *b)
{
	static const char *const pairs[] = { "status", "exit_code", "signal",  "error",
					     "value",  "language",  "runtime", "policy" };
	struct comparison c = { .root = json_object(), .same = true };

	(void)json_object_set_new(c.root, "a", diff_known(a->result, "id"));
	(void)json_object_set_new(c.root, "b", diff_known(b->result, "id"));
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		diff_add_pair(&c, a, b, pairs[i]);
	diff_add_stream(&c, a, b, "stdout");
	diff_add_stream(&c, a, b, "stderr");
	diff_add_files(&c, a, b);
	diff_add_request(&c, a, b);
	(void)json_object_set_new(c.root, "usage", diff_usage(a, b));
	if (json_object_set_new(c.root, "same", json_boolean(c.same)) < 0 ||
	    json_object_size(c.root) != ARRAY_SIZE(pairs) + 8) {
		json_decref(c.root);
		return NULL;
	}
	return c.root;
}
