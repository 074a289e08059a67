/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a request. A name must be in normal form (no empty, "." or ".." component), so equal files have
 * equal names. Sorting finds a file that is a directory of another: with '/' as the smallest letter, "a" is
 * followed directly by all that starts with "a/".
 */
#include "spec/request-read.h"

#include <string.h>

#include "base/base64.h"

enum { COMPONENT_MAX = 255 };

static const char *check_component(const char *name, size_t len)
{
	if (len == 0)
		return "has two slashes in a row, or one at its end";
	if (len == 1 && name[0] == '.')
		return "has a '.' between its slashes; leave that out";
	if (len == 2 && name[0] == '.' && name[1] == '.')
		return "leads out of the work directory; write it without '..'";
	if (len > COMPONENT_MAX)
		return "has more than 255 bytes between two slashes";
	return NULL;
}

static const char *check_path(const char *path, size_t len)
{
	size_t start = 0, depth = 0;

	if (len == 0)
		return "is empty";
	if (memchr(path, '\0', len))
		return "holds a NUL byte";
	if (len > REQUEST_PATH_MAX)
		return "is longer than 1000 bytes";
	if (path[0] == '/')
		return "is absolute; names are relative to the work directory";
	for (size_t i = 0; i <= len; i++) {
		const char *problem;

		if (i < len && path[i] != '/')
			continue;
		problem = check_component(path + start, i - start);
		if (problem)
			return problem;
		if (++depth > REQUEST_DEPTH_MAX)
			return "is more than 32 directories deep";
		start = i + 1;
	}
	return NULL;
}

int request_check_path(const char *path, size_t len, struct error *err)
{
	const char *problem = check_path(path, len);

	if (!problem)
		return 0;
	return error_field(err, "files", "files: the name '%s' %s", quote(path, len).text, problem);
}

int request_read_bytes(const struct reader *r, const json_t *value, struct span *ret)
{
	const json_t *encoded = json_object_get(value, "base64");
	size_t len = json_string_length(encoded), decoded;
	char *data;

	if (json_is_string(value)) {
		*ret = (struct span){ json_string_value(value), json_string_length(value) };
		return 0;
	}
	if (!json_is_string(encoded))
		return reader_refuse(r, "%s is neither a text nor {\"base64\": …}",
				     quote_json(value).text);
	data = arena_alloc(r->arena, base64_decoded_max(len));
	if (!data)
		return reader_no_memory(r);
	if (base64_decode(json_string_value(encoded), len, data, &decoded) < 0)
		return reader_refuse(r, "it is not valid base64");
	*ret = (struct span){ data, decoded };
	return 0;
}

static int read_mode(const struct reader *r, const struct key_rule *rule _unused_,
		     const json_t *value, void *object)
{
	static const struct {
		const char *text;
		uint32_t mode;
	} modes[] = { { "0644", 0644 }, { "644", 0644 }, { "0755", 0755 }, { "755", 0755 } };
	struct request_file *file = object;

	for (size_t i = 0; json_is_string(value) && i < ARRAY_SIZE(modes); i++)
		if (strcmp(modes[i].text, json_string_value(value)) == 0) {
			file->mode = modes[i].mode;
			return 0;
		}
	return reader_refuse(r, "%s is not \"0644\" or \"0755\"", quote_json(value).text);
}

static int read_content(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request_file *file = object;

	if (!json_is_string(value))
		return reader_refuse(r, "%s is not a text", quote_json(value).text);
	if (file->data.data)
		return reader_refuse(r, "give text or base64, not both");
	file->data = (struct span){ json_string_value(value), json_string_length(value) };
	return 0;
}

static int read_file(const struct reader *r, const json_t *value, struct request_file *file)
{
	static const struct key_rule rules[] = {
		{ .key = "base64", .read = read_content },
		{ .key = "text", .read = read_content },
		{ .key = "mode", .read = read_mode },
	};
	int e;

	if (json_is_string(value))
		return request_read_bytes(r, value, &file->data);
	if (!json_is_object(value))
		return reader_refuse(r, "%s is neither a text nor {\"base64\": …}",
				     quote_json(value).text);
	e = read_object(r, value, KEY_TABLE(rules), file);
	if (e < 0)
		return e;
	if (!file->data.data)
		return reader_refuse(r, "it has neither text nor base64");
	if (json_object_get(value, "text"))
		return 0;
	return request_read_bytes(r, value, &file->data);
}

static int letter(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 2;
}

static int compare_paths(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return letter(*x) - letter(*y);
}

int request_check_nesting(const struct reader *r, struct file_list list, struct file_list more)
{
	size_t n = list.n + more.n;
	const char **paths = arena_alloc(r->arena, n * sizeof(*paths));

	if (!paths)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++)
		paths[i] = i < list.n ? list.files[i].path : more.files[i - list.n].path;
	qsort(paths, n, sizeof(*paths), compare_paths);
	for (size_t i = 1; i < n; i++) {
		size_t len = strlen(paths[i - 1]);

		if (strncmp(paths[i - 1], paths[i], len) == 0 && paths[i][len] == '/')
			return reader_refuse(r, "'%s' is a file and also the directory of '%s'",
					     quote_text(paths[i - 1]).text,
					     quote_text(paths[i]).text);
	}
	return 0;
}

int request_read_file_list(const struct reader *r, const json_t *value, struct file_list *ret)
{
	struct file_list list = { 0 };
	const char *path;
	const json_t *content;

	if (!json_is_object(value))
		return reader_refuse(r,
				     "%s is not an object of names and contents, such as "
				     "{\"data.csv\": \"a,b\"}",
				     quote_json(value).text);
	if (json_object_size(value) > REQUEST_FILES_MAX)
		return reader_refuse(r, "there are %zu files, more than the %d allowed",
				     json_object_size(value), REQUEST_FILES_MAX);
	list.files = arena_alloc(r->arena, json_object_size(value) * sizeof(*list.files));
	if (!list.files)
		return reader_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)value, path, content)
	{
		struct request_file *file = &list.files[list.n];
		struct reader at = reader_at(r, path);
		int e = request_check_path(path, strlen(path), r->err);

		if (e < 0)
			return e;
		*file = (struct request_file){ .path = path, .mode = 0644 };
		e = read_file(&at, content, file);
		if (e < 0)
			return e;
		list.n++;
	}
	*ret = list;
	return request_check_nesting(r, list, (struct file_list){ 0 });
}

int request_read_files(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	struct request *req = object;
	struct file_list list;
	int e = request_read_file_list(r, value, &list);

	if (e < 0)
		return e;
	req->files = list.files;
	req->n_files = list.n;
	return 0;
}
