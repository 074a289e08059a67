/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See unpack.h. What libarchive is allowed to read is fixed: two formats, one filter. Sizes in headers are believed for
 * nothing: what counts is what was unpacked.
 */
#include "engine/unpack.h"

#include "base/buf.h"
#include "spec/base64.h"
#include "spec/request.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE_BYTES = 64 << 10 };

/*
 * libarchive takes names for text of the thread's locale and turns them into that of others: in "C", any that is not ASCII
 * is damage to it.
 */
struct tongue {
	locale_t ours, before;
};

static struct tongue tongue_begin(void)
{
	struct tongue t = { .ours = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0) };

	if (t.ours)
		t.before = uselocale(t.ours);
	return t;
}

static void tongue_end(struct tongue *t)
{
	if (!t->ours)
		return;
	(void)uselocale(t->before);
	freelocale(t->ours);
}

static int refuse(struct error *err, int errnum, const char *name, const char *why)
{
	char shown[128];
	size_t n = 0;

	for (; name && name[n] && n < sizeof(shown) - 1; n++)
		shown[n] = name[n] < ' ' || name[n] == 127 ? '?' : name[n];
	shown[n] = '\0';
	(void)error_set(err, ERROR_INPUT, errnum, "archive: %s%s%s%s", n ? "'" : "", shown,
			n ? "' " : "", why);
	if (err)
		(void)snprintf(err->field, sizeof(err->field), "archive");
	return -errnum;
}

static void archive_cleanup(struct archive **a)
{
	if (*a)
		(void)archive_read_free(*a);
}

static int open_archive(struct span packed, struct archive **ret, struct error *err)
{
	_cleanup_(archive_cleanup) struct archive *a = archive_read_new();

	if (!a)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_support_format_zip_seekable(a) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(a) != ARCHIVE_OK)
		return error_set(err, ERROR_INTERNAL, ENOTSUP,
				 "archives cannot be read on this host");
	if (archive_read_open_memory(a, packed.data, packed.len) != ARCHIVE_OK)
		return refuse(err, EINVAL, NULL, "it is no tar, tar.gz or zip");
	/* The last of them is the memory itself. Packed more than once, a few bytes are as many as one likes. */
	if (archive_filter_count(a) > 2)
		return refuse(err, EINVAL, NULL, "it is packed more than once");
	*ret = TAKE_PTR(a);
	return 0;
}

/* Everything but a regular file or a directory, and every name that is not plain. */
static int check_entry(struct archive_entry *entry, char *name, struct error *err)
{
	size_t len = strlen(name);
	mode_t type = archive_entry_filetype(entry);

	if (archive_entry_symlink(entry) || type == S_IFLNK)
		return refuse(err, EINVAL, name, "is a symbolic link");
	if (archive_entry_hardlink(entry))
		return refuse(err, EINVAL, name, "is a hard link");
	if (type != S_IFREG && type != S_IFDIR)
		return refuse(err, EINVAL, name, "is no regular file");
	if (archive_entry_perm(entry) & (S_ISUID | S_ISGID))
		return refuse(err, EINVAL, name, "has a setuid or setgid bit");
	if (archive_entry_is_encrypted(entry))
		return refuse(err, EINVAL, name, "is encrypted");
	/* "dir/" is how directories are written, "./" how tar begins. */
	while (len > 1 && type == S_IFDIR && name[len - 1] == '/')
		name[--len] = '\0';
	return 0;
}

static int read_content(struct archive *a, const char *name, struct buf *ret, struct error *err)
{
	_cleanup_free_ char *piece = malloc(PIECE_BYTES);
	ssize_t n;

	if (!piece)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	while ((n = archive_read_data(a, piece, PIECE_BYTES)) > 0)
		if (buf_append(ret, piece, (size_t)n) < 0)
			return refuse(err, EFBIG, name, "is too large when unpacked");
	return n < 0 ? refuse(err, EINVAL, name, "is damaged") : 0;
}

/* Contents of a directory (GNU's dumps, forged zips) would be unpacked to pass over them, without any bound. */
static int check_directory(struct archive *a, const char *name, struct error *err)
{
	char byte;
	ssize_t n = archive_read_data(a, &byte, 1);

	return n == 0 ? 0
		      : refuse(err, EINVAL, name,
			       n < 0 ? "is damaged" : "is a directory with contents");
}

static char *encode(const struct buf *data, size_t *ret_len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)data->data;
	char *text = malloc((data->len + 2) / 3 * 4 + 1), *out = text;

	for (size_t i = 0; text && i < data->len; i += 3) {
		size_t left = data->len - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				(left > 2 ? in[i + 2] : 0);

		*out++ = digits[bits >> 18];
		*out++ = digits[bits >> 12 & 63];
		*out++ = left > 1 ? digits[bits >> 6 & 63] : '=';
		*out++ = left > 2 ? digits[bits & 63] : '=';
	}
	if (text)
		*ret_len = (size_t)(out - text);
	return text;
}

static json_t *file_to_json(const struct buf *data, bool executable)
{
	json_t *text = json_stringn(data->data ? data->data : "", data->len);
	json_t *file;

	if (text && !executable)
		return text;
	if (text) {
		file = json_pack("{s:o, s:s}", "text", text, "mode", "0755");
	} else { /* no UTF-8 */
		size_t len;
		_cleanup_free_ char *encoded = encode(data, &len);

		file = encoded ? json_pack("{s:s%, s:s}", "base64", encoded, len, "mode",
					   executable ? "0755" : "0644")
			       : NULL;
	}
	return file;
}

struct budget {
	size_t entries, bytes;
};

static int take_entry(struct archive *a, struct archive_entry *entry, json_t *files,
		      struct budget *left, struct error *err)
{
	_cleanup_buf_ struct buf data = { 0 };
	_cleanup_free_ char *copy = NULL;
	const char *raw = archive_entry_pathname_utf8(entry);
	char *name;
	int r;

	if (!raw)
		return refuse(err, EINVAL, archive_entry_pathname(entry),
			      "has a name that is no UTF-8");
	copy = strdup(raw);
	if (!copy)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	r = check_entry(entry, copy, err);
	if (r < 0)
		return r;
	name = strncmp(copy, "./", 2) == 0 ? copy + 2 : copy;
	if (archive_entry_filetype(entry) == S_IFDIR && (!*name || strcmp(name, ".") == 0))
		return check_directory(a, ".", err);
	if (request_check_path(name, strlen(name), NULL) < 0)
		return refuse(err, EINVAL, name, "is not a relative file name without . and ..");
	if (archive_entry_filetype(entry) == S_IFDIR)
		return check_directory(a, name, err);
	if (json_object_get(files, name))
		return refuse(err, EINVAL, name, "is there twice");
	buf_init(&data, MIN(left->bytes, (size_t)UNPACK_FILE_MAX));
	r = read_content(a, name, &data, err);
	if (r < 0)
		return r;
	left->bytes -= data.len;
	if (json_object_set_new(files, name,
				file_to_json(&data, archive_entry_perm(entry) & S_IXUSR)) < 0)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	return 0;
}

int unpack_archive(struct span packed, json_t *files, struct error *err)
{
	_cleanup_(tongue_end) _unused_ struct tongue tongue = tongue_begin();
	_cleanup_(archive_cleanup) struct archive *a = NULL;
	struct budget left = { UNPACK_ENTRIES_MAX, UNPACK_TOTAL_MAX };
	struct archive_entry *entry;
	int r = open_archive(packed, &a, err), e;

	if (r < 0)
		return r;
	while ((e = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		if (left.entries-- == 0)
			return refuse(err, EFBIG, NULL, "it has more than 4096 entries");
		r = take_entry(a, entry, files, &left, err);
		if (r < 0)
			return r;
	}
	if (e != ARCHIVE_EOF)
		return refuse(err, EINVAL, NULL, "it is damaged, or no tar, tar.gz or zip");
	return left.entries == UNPACK_ENTRIES_MAX ? refuse(err, EINVAL, NULL, "it is empty") : 0;
}

int unpack_base64(const json_t *text, json_t *files, struct error *err)
{
	_cleanup_free_ char *packed = NULL;
	size_t len = json_string_length(text), n;

	if (!json_is_string(text))
		return refuse(err, EINVAL, NULL, "it is no base64 text of a tar, tar.gz or zip");
	if (len / 4 * 3 > UNPACK_PACKED_MAX)
		return refuse(err, EFBIG, NULL, "it is too large");
	packed = malloc(base64_decoded_max(len));
	if (!packed)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	if (base64_decode(json_string_value(text), len, packed, &n) < 0)
		return refuse(err, EINVAL, NULL, "it is not valid base64");
	return unpack_archive((struct span){ packed, n }, files, err);
}
