/* SPDX-License-Identifier: Apache-2.0 */
/* See tool-shapes.h. */
#include "mcp/tool-shapes.h"

#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/loop/worker.h"
#include "engine/engine.h"
#include "mcp/work.h"

const char *image_type(struct span bytes)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *type;
	} kinds[] = {
		{ "\x89PNG\r\n\x1a\n", 8, "image/png" },
		{ "\xff\xd8\xff", 3, "image/jpeg" },
		{ "GIF8", 4, "image/gif" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (bytes.len > kinds[i].len &&
		    memcmp(bytes.data, kinds[i].magic, kinds[i].len) == 0)
			return kinds[i].type;
	if (bytes.len > 12 && memcmp(bytes.data, "RIFF", 4) == 0 &&
	    memcmp(bytes.data + 8, "WEBP", 4) == 0)
		return "image/webp";
	return NULL;
}

json_t *image_of_bytes(struct span bytes)
{
	const char *type = bytes.len <= IMAGE_BYTES_MAX ? image_type(bytes) : NULL;
	char *text = type ? base64_encode(bytes.data, bytes.len) : NULL;
	json_t *block = text ? mcp_image(text, type) : NULL;

	free(text);
	return block;
}

json_t *image_of_base64(const json_t *text)
{
	size_t len = json_string_length(text), n = 0;
	_cleanup_free_ char *bytes = NULL;

	if (len == 0 || len > IMAGE_BYTES_MAX / 3 * 4 + IMAGE_BYTES_MAX / 16)
		return NULL;
	bytes = malloc(base64_decoded_max(len) + 1);
	if (!bytes || base64_decode(json_string_value(text), len, bytes, &n) < 0)
		return NULL;
	return image_of_bytes((struct span){ bytes, n });
}

struct outputs_work {
	const json_t *outputs;
	json_t *list;
};

static void add_outputs(void *data)
{
	static const char *const types[] = { "image/png", "image/jpeg" };
	const struct outputs_work *o = data;
	const json_t *one;
	size_t i;

	json_array_foreach(o->outputs, i, one)
	{
		const json_t *forms = json_object_get(one, "data");
		json_t *block = NULL;

		if (json_array_size(o->list) == IMAGES_MAX)
			break;
		for (size_t t = 0; !block && t < ARRAY_SIZE(types); t++)
			block = image_of_base64(json_object_get(forms, types[t]));
		if (block)
			(void)json_array_append_new(o->list, block);
	}
}

static bool is_image_name(const char *path)
{
	static const char *const ends[] = { ".png", ".jpg", ".jpeg", ".gif", ".webp" };
	const char *dot = path ? strrchr(path, '.') : NULL;

	for (size_t i = 0; dot && i < ARRAY_SIZE(ends); i++)
		if (strcasecmp(dot, ends[i]) == 0)
			return true;
	return false;
}

json_t *image_of_source(const struct text_source *source)
{
	const size_t size = (size_t)source->size;
	_cleanup_free_ char *bytes = source->size <= IMAGE_BYTES_MAX ? malloc(size + 1) : NULL;
	ssize_t n = bytes ? text_read(source, 0, bytes, size) : -1;

	return n > 0 ? image_of_bytes((struct span){ bytes, (size_t)n }) : NULL;
}

static json_t *image_of_file(struct mcp_work *w, const char *id, const char *path)
{
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };
	json_t *block;

	if (engine_file(w->app->engine, w->viewer, (struct engine_path){ id, path }, &file, &err) <
	    0)
		return NULL;
	block = image_of_source(&(struct text_source){ .fd = file.fd, .size = file.size_bytes });
	(void)fd_close(file.fd);
	return block;
}

static void add_files(struct mcp_work *w, const json_t *result, json_t *list)
{
	const char *id = json_string_value(json_object_get(result, "id"));
	const json_t *files = json_object_get(result, "files"), *one;
	size_t i;

	json_array_foreach(files, i, one)
	{
		const char *path = json_string_value(json_object_get(one, "path"));
		json_t *block = is_image_name(path) && json_array_size(list) < IMAGES_MAX
					? image_of_file(w, id, path)
					: NULL;

		if (block)
			(void)json_array_append_new(list, block);
	}
}

json_t *images_of_result(struct mcp_work *w, const json_t *result)
{
	struct outputs_work o = { json_object_get(result, "outputs"), json_array() };

	if (o.list && json_array_size(o.outputs) > 0)
		worker_call(WORKER_ALWAYS, add_outputs, &o);
	if (o.list)
		add_files(w, result, o.list);
	return o.list;
}
