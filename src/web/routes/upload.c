/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests whose body is no JSON, for curl and forms. The body is the program itself, or a form (multipart/form-data) whose
 * fields are keys of a request and whose other files are files of the request. Keys may stand in the query, too, and so
 * may limits, by their names. The result is the JSON of a request, which is checked as any other.
 */
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "spec/knob.h"
#include "spec/yaml.h"
#include "web/codec/multipart.h"
#include "web/codec/negotiate.h"
#include "web/routes/api-private.h"

/* A larger tree belongs into a JSON body, where all of its values are counted before it is parsed. */
enum { TREES_BYTES_MAX = 256 << 10 };

struct upload {
	json_t *request;
	size_t trees_bytes; /* of all values that are JSON */
	struct error *err;
};

static int refuse_value(const struct upload *u, const char *key, const char *why)
{
	return error_field(u->err, key, "%.64s: %s", key, why);
}

static int upload_put(struct upload *u, json_t *object, const char *key, json_t *value)
{
	if (!object) {
		json_decref(value);
		return error_oom(u->err);
	}
	if (!json_is_object(object) || json_object_get(object, key)) {
		json_decref(value);
		return refuse_value(u, key, "it is given twice");
	}
	return json_object_set_new(object, key, value) < 0 ? error_oom(u->err) : 0;
}

/* The object of that name, made if there is none. */
static json_t *upload_below(const struct upload *u, const char *key)
{
	json_t *object = json_object_get(u->request, key);

	if (object)
		return object;
	(void)json_object_set_new(u->request, key, json_object());
	return json_object_get(u->request, key);
}

static json_t *base64_text(struct span bytes)
{
	_cleanup_free_ char *text = base64_encode(bytes.data, bytes.len);

	return text ? json_string(text) : NULL;
}

/* As text; bytes that are no UTF-8 as {"base64": …}. */
static json_t *text_or_bytes(struct span bytes)
{
	json_t *text = json_stringn(bytes.data, bytes.len);

	return text ? text : json_pack("{s:o}", "base64", base64_text(bytes));
}

/* One value, as JSON: [VALUE] has the bounds of every body. */
static int put_tree(struct upload *u, const char *key, struct span text)
{
	_cleanup_buf_ struct buf list = { 0 };
	struct error unread = { 0 };
	json_t *tree = NULL, *value;

	u->trees_bytes += text.len;
	if (u->trees_bytes > TREES_BYTES_MAX)
		return refuse_value(u, key, "it is too large for a form; send the request as JSON");
	buf_init(&list, text.len + 2);
	if (buf_puts(&list, "[") < 0 || buf_append(&list, text.data, text.len) < 0 ||
	    buf_puts(&list, "]") < 0)
		return error_oom(u->err);
	if (json_parse(&(struct document){ key, list.data, list.len }, &tree, &unread) < 0 ||
	    json_array_size(tree) != 1) {
		json_decref(tree);
		return refuse_value(u, key, "its value is not JSON");
	}
	value = json_incref(json_array_get(tree, 0));
	json_decref(tree);
	return upload_put(u, u->request, key, value);
}

static bool is_text_key(const char *key)
{
	static const char *const keys[] = {
		"code",	 "stdin", "language",  "network", "policy",
		"image", "entry", "workspace", "commit",  "callback_url"
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

/* filename NULL: a field. */
static int put_value(struct upload *u, const char *key, const char *filename, struct span value)
{
	if (is_text_key(key))
		return upload_put(u, u->request, key, text_or_bytes(value));
	if (strcmp(key, "archive") == 0)
		return upload_put(u, u->request, key, base64_text(value));
	if (filename)
		return upload_put(u, upload_below(u, "files"), filename, text_or_bytes(value));
	/* `files` is a limit, too, but a form has files. */
	if (knob_find(key) && strcmp(key, "files") != 0)
		return upload_put(u, upload_below(u, "limits"), key, text_or_bytes(value));
	return put_tree(u, key, value);
}

/* ?disconnect= and ?interactive= are about the connection. */
static int read_query(struct upload *u, const struct uri *uri)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < uri->n_pairs; i++) {
		const char *name = uri->pairs[i].name;

		if (strcmp(name, "disconnect") != 0 && strcmp(name, "interactive") != 0)
			r = put_value(u, name, NULL, span_of(uri->pairs[i].value));
	}
	return r;
}

static bool is_part_name(struct span s)
{
	return !s.data || (!memchr(s.data, '\0', s.len) && utf8_is_valid(s.data, s.len));
}

static int refuse_form(const struct upload *u)
{
	return error_set(u->err, ERROR_INPUT, EINVAL,
			 "The form is malformed; see RFC 7578 (multipart/form-data).");
}

static int read_part(struct upload *u, const struct multipart_part *part)
{
	_cleanup_free_ char *name = strndup(part->name.data, part->name.len), *filename = NULL;

	if (!is_part_name(part->name) || !is_part_name(part->filename))
		return refuse_form(u);
	if (part->filename.data)
		filename = strndup(part->filename.data, part->filename.len);
	if (!name || (part->filename.data && !filename))
		return error_oom(u->err);
	return put_value(u, name, filename, part->content);
}

static int read_form(struct upload *u, struct span type, struct span body)
{
	struct multipart_part part;
	struct multipart m;
	int r = multipart_init(&m, type, body);

	while (r >= 0 && (r = multipart_next(&m, &part)) > 0) {
		r = read_part(u, &part);
		if (r < 0)
			return r;
	}
	if (r == -E2BIG)
		return error_set(u->err, ERROR_INPUT, E2BIG, "The form has more than %d parts.",
				 MULTIPART_PARTS_MAX);
	return r < 0 ? refuse_form(u) : 0;
}

/* text/x-python names a language. */
static int read_language(struct upload *u, struct span type)
{
	static const char prefix[] = "text/x-";
	const size_t n = sizeof(prefix) - 1;
	struct span media;

	if (json_object_get(u->request, "language") || !span_split(&type, ';', &media) ||
	    media.len <= n || !span_is_nocase((struct span){ media.data, n }, prefix))
		return 0;
	media = span_trim((struct span){ media.data + n, media.len - n });
	return upload_put(u, u->request, "language", json_stringn(media.data, media.len));
}

int upload_read(const struct request_ctx *ctx, json_t **ret, struct error *err)
{
	struct upload u = { .request = json_object(), .err = err };
	struct span type = request_header(ctx, "content-type"), body = request_body(ctx);
	int r = u.request ? read_query(&u, request_uri(ctx)) : error_oom(err);

	if (r == 0 && content_type_is(type, "multipart/form-data"))
		r = read_form(&u, type, body);
	else if (r == 0)
		r = put_value(&u, "code", NULL, body);
	if (r == 0)
		r = read_language(&u, type);
	if (r < 0) {
		json_decref(u.request);
		return r;
	}
	*ret = u.request;
	return 0;
}
