/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that several parts of a request have: bytes, variables and files; and its mounts. A file's name must be in normal form (no
 * empty, "." or ".." component), so equal files have equal names. Sorting finds a file that is a directory of another: with '/' as the
 * smallest letter, "a" is followed directly by all that starts with "a/".
 */
#include "spec/request-read.h"

#include <string.h>

#include "base/base64.h"
#include "base/path.h"

enum { COMPONENT_MAX = 255, MOUNT_PATH_MAX = 1000 };

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS	"0123456789"

static const char *file_component_fault(const char *name, size_t len)
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

/* What is wrong with a name, or NULL. */
static const char *file_path_fault(const char *path, size_t len)
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
		problem = file_component_fault(path + start, i - start);
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
	const char *problem = file_path_fault(path, len);

	if (!problem)
		return 0;
	return error_field(err, "files", "files: the name '%s' %s", quote(path, len).text, problem);
}

int request_room(const struct reader *r, const json_t *value, const struct request_form *form,
		 void *ret)
{
	const size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value);
	void *room;

	if (json_typeof(value) != form->type)
		return reader_refuse(r, "%s is not %s", quote_json(value).text, form->wanted);
	if (n > form->max)
		return reader_refuse(r, "there are %zu%s, more than the %zu allowed", n, form->what,
				     form->max);
	room = arena_alloc(r->arena, (n + 1) * form->size);
	if (!room)
		return reader_no_memory(r);
	*(void **)ret = room;
	return 0;
}

static int file_read_data(const struct reader *r, const json_t *value, struct span *ret)
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

int request_read_bytes(const struct reader *r, const struct schema_field *f, const json_t *value,
		       void *object)
{
	return file_read_data(r, value, field_member(f, object));
}

int request_read_env(const struct reader *r, const struct schema_field *f, const json_t *value,
		     void *object)
{
	static const struct request_form form = {
		JSON_OBJECT, "an object of names and values, such as {\"LANG\": \"C\"}",
		" variables", REQUEST_ENV_MAX, sizeof(struct request_var)
	};
	struct request_var *vars;
	const char *name;
	const json_t *text;
	size_t n = 0;
	int e = request_room(r, value, &form, &vars);

	if (e < 0)
		return e;
	json_object_foreach((json_t *)(uintptr_t)value, name, text)
	{
		struct request_var *var = &vars[n++];
		struct reader at = reader_at(r, name);

		if (!*name || strchr(DIGITS, *name) || name[strspn(name, LETTERS DIGITS "_")])
			return reader_refuse(r,
					     "'%s' is not a variable name (letters, digits and "
					     "_, not starting with a digit)",
					     quote_text(name).text);
		var->name = name;
		e = read_string(&at, text, REQUEST_WORD_MAX, &var->value);
		if (e < 0)
			return e;
		if (strlen(name) + 1 + strlen(var->value) > REQUEST_WORD_MAX)
			return reader_refuse(&at, "name and value have more than %d bytes",
					     REQUEST_WORD_MAX);
	}
	*(struct request_var **)field_member(f, object) = vars;
	*(size_t *)(void *)((char *)object + f->beside) = n;
	return 0;
}

int request_check_words(const struct reader *r, const char *const *words, struct var_list env)
{
	size_t total = 0;

	for (; words && *words; words++)
		total += strlen(*words) + 1;
	for (size_t i = 0; i < env.n; i++)
		total += strlen(env.vars[i].name) + strlen(env.vars[i].value) + 2;
	if (total > REQUEST_WORDS_MAX)
		return reader_refuse(r,
				     "arguments and variables have %zu bytes together, more than "
				     "the %d allowed; pass large data as stdin or files",
				     total, REQUEST_WORDS_MAX);
	return 0;
}

static int file_read_mode(const struct reader *r, const struct schema_field *f _unused_,
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

static int file_read_content(const struct reader *r, const struct schema_field *f _unused_,
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

const struct schema_field request_content_fields[] = {
	{ "text", "string", "the content; give this or base64", file_read_content },
	{ "base64", "string", "the content, if it is not text", file_read_content },
	{ "mode", "0644|0755|644|755", "[0644]", file_read_mode },
	{ 0 },
};

/* Bytes that are no text. */
const struct schema_field request_encoded_fields[] = {
	{ "base64", "string", "the bytes" },
	{ 0 },
};

static int file_read(const struct reader *r, const json_t *value, struct request_file *file)
{
	int e;

	if (json_is_string(value))
		return file_read_data(r, value, &file->data);
	if (!json_is_object(value))
		return reader_refuse(r, "%s is neither a text nor {\"base64\": …}",
				     quote_json(value).text);
	e = read_object(r, value, SHAPE_OF(request_content_fields), file);
	if (e < 0)
		return e;
	if (!file->data.data)
		return reader_refuse(r, "it has neither text nor base64");
	return json_object_get(value, "text") ? 0 : file_read_data(r, value, &file->data);
}

static int file_letter(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 2;
}

static int file_compare_paths(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return file_letter(*x) - file_letter(*y);
}

int request_check_nesting(const struct reader *r, struct file_list list, struct file_list more)
{
	size_t n = list.n + more.n;
	const char **paths = arena_alloc(r->arena, n * sizeof(*paths));

	if (!paths)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++)
		paths[i] = i < list.n ? list.files[i].path : more.files[i - list.n].path;
	qsort(paths, n, sizeof(*paths), file_compare_paths);
	for (size_t i = 1; i < n; i++) {
		size_t len = strlen(paths[i - 1]);

		if (strncmp(paths[i - 1], paths[i], len) == 0 && paths[i][len] == '/')
			return reader_refuse(r, "'%s' is a file and also the directory of '%s'",
					     quote_text(paths[i - 1]).text,
					     quote_text(paths[i]).text);
	}
	return 0;
}

int request_read_files(const struct reader *r, const struct schema_field *f, const json_t *value,
		       void *object)
{
	static const struct request_form form = {
		JSON_OBJECT, "an object of names and contents, such as {\"data.csv\": \"a,b\"}",
		" files", REQUEST_FILES_MAX, sizeof(struct request_file)
	};
	struct request_file *files;
	const char *path;
	const json_t *content;
	size_t n = 0;
	int e = request_room(r, value, &form, &files);

	if (e < 0)
		return e;
	json_object_foreach((json_t *)(uintptr_t)value, path, content)
	{
		struct reader at = reader_at(r, path);

		e = request_check_path(path, strlen(path), r->err);
		if (e < 0)
			return e;
		files[n] = (struct request_file){ .path = path, .mode = 0644 };
		e = file_read(&at, content, &files[n++]);
		if (e < 0)
			return e;
	}
	*(struct request_file **)field_member(f, object) = files;
	*(size_t *)(void *)((char *)object + f->beside) = n;
	return request_check_nesting(r, (struct file_list){ files, n }, (struct file_list){ 0 });
}

/* --- mounts: {TARGET: "SOURCE"} or {TARGET: "SOURCE:rw"}; plan/policy/ decides which sources may be shown --- */

/* An absolute path in normal form. */
static int mount_check_path(const struct reader *r, const char *path)
{
	if (path[0] != '/' || strlen(path) > MOUNT_PATH_MAX ||
	    request_check_path(path + 1, strlen(path + 1), NULL) < 0)
		return reader_refuse(r, "'%s' is not an absolute path without . and ..",
				     quote_text(path).text);
	/* They mean something in the options of the kernel's mounts. */
	if (strpbrk(path, ":,\\\""))
		return reader_refuse(r, "'%s' holds one of : , \\ and \"", quote_text(path).text);
	return 0;
}

/* A target is none of the directories that every sandbox has. */
static int mount_check_target(const struct reader *r, const struct request *req, const char *path)
{
	static const char *const own[] = { "/bin",    "/sbin", "/lib",	    "/lib32", "/lib64",
					   "/libx32", "/usr",  "/opt",	    "/etc",   "/dev",
					   "/proc",   "/sys",  "/tmp",	    "/var",   "/sandbox",
					   "/build",  "/kit",  "/workspace" };
	int e = mount_check_path(r, path);

	for (size_t i = 0; e == 0 && i < ARRAY_SIZE(own); i++)
		if (path_is_below(path, own[i]))
			e = reader_refuse(r,
					  "'%s' is a place of the sandbox itself; take another, "
					  "such as /data",
					  quote_text(path).text);
	for (size_t i = 0; e == 0 && i < req->n_mounts; i++)
		if (path_is_below(path, req->mounts[i].target) ||
		    path_is_below(req->mounts[i].target, path))
			e = reader_refuse(r, "'%s' and '%s' lie in each other",
					  quote_text(path).text, req->mounts[i].target);
	return e;
}

/* Without a suffix, or with ":ro", it is read-only. */
static int mount_read_source(const struct reader *r, const json_t *value, struct request_mount *ret)
{
	const char *text, *suffix;
	int e = read_string(r, value, MOUNT_PATH_MAX, &text);

	if (e < 0)
		return e;
	suffix = strrchr(text, ':');
	ret->writable = suffix && strcmp(suffix, ":rw") == 0;
	if (!suffix || (!ret->writable && strcmp(suffix, ":ro") != 0))
		suffix = text + strlen(text);
	ret->source = arena_strndup(r->arena, text, (size_t)(suffix - text));
	return ret->source ? mount_check_path(r, ret->source) : reader_no_memory(r);
}

int request_read_mounts(const struct reader *r, const struct schema_field *f _unused_,
			const json_t *value, void *object)
{
	static const struct request_form form = {
		JSON_OBJECT,
		"an object of paths in the sandbox and on the host, such as {\"/data\": "
		"\"/srv/data\"}",
		"", REQUEST_MOUNTS_MAX, sizeof(struct request_mount)
	};
	struct request *req = object;
	const char *target;
	const json_t *source;
	int e = request_room(r, value, &form, &req->mounts);

	if (e < 0)
		return e;
	json_object_foreach((json_t *)(uintptr_t)value, target, source)
	{
		struct reader at = reader_at(r, target);
		struct request_mount mount = { .target = target };

		e = mount_check_target(r, req, target);
		if (e == 0)
			e = mount_read_source(&at, source, &mount);
		if (e < 0)
			return e;
		req->mounts[req->n_mounts++] = mount;
	}
	return 0;
}
