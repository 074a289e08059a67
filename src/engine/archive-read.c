/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See archive-read.h. What libarchive is allowed to read is fixed: two formats, one filter. Sizes in headers are believed for
 * nothing: what counts is what was unpacked.
 */
#include "engine/archive-read.h"

#include "spec/request.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PIECE_BYTES = 64 << 10 };

/*
 * libarchive takes names for text of the thread's locale and turns them into that of others: in "C", any that is not ASCII
 * is damage to it. Times of a zip are local, and nothing of ours reads them.
 */
void archive_locale(void)
{
	locale_t ours = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	if (ours)
		(void)uselocale(ours);
	(void)setenv("TZ", "UTC0", 1);
	tzset();
}

int archive_refuse(struct error *err, int errnum, const char *name, const char *why)
{
	char shown[128];
	size_t n = 0;

	for (; name && name[n] && n < sizeof(shown) - 1; n++)
		shown[n] = name[n] < ' ' || name[n] == 127 ? '?' : name[n];
	shown[n] = '\0';
	(void)error_set(err, errnum == EFBIG ? ERROR_TOO_LARGE : ERROR_INPUT, errnum,
			"archive: %s%s%s%s", n ? "'" : "", shown, n ? "' " : "", why);
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
		return error_oom(err);
	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_support_format_zip_seekable(a) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(a) != ARCHIVE_OK)
		return error_set(err, ERROR_INTERNAL, ENOTSUP,
				 "archives cannot be read on this host");
	if (archive_read_open_memory(a, packed.data, packed.len) != ARCHIVE_OK)
		return archive_refuse(err, EINVAL, NULL, "it is no tar, tar.gz or zip");
	/* The last of them is the memory itself. Packed more than once, a few bytes are as many as one likes. */
	if (archive_filter_count(a) > 2)
		return archive_refuse(err, EINVAL, NULL, "it is packed more than once");
	*ret = TAKE_PTR(a);
	return 0;
}

/* Everything but a regular file or a directory, and every name that is not plain. */
static int check_entry(struct archive_entry *entry, char *name, struct error *err)
{
	size_t len = strlen(name);
	mode_t type = archive_entry_filetype(entry);

	if (archive_entry_symlink(entry) || type == S_IFLNK)
		return archive_refuse(err, EINVAL, name, "is a symbolic link");
	if (archive_entry_hardlink(entry))
		return archive_refuse(err, EINVAL, name, "is a hard link");
	if (type != S_IFREG && type != S_IFDIR)
		return archive_refuse(err, EINVAL, name, "is no regular file");
	if (archive_entry_perm(entry) & (S_ISUID | S_ISGID))
		return archive_refuse(err, EINVAL, name, "has a setuid or setgid bit");
	if (archive_entry_is_encrypted(entry))
		return archive_refuse(err, EINVAL, name, "is encrypted");
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
		return error_oom(err);
	while ((n = archive_read_data(a, piece, PIECE_BYTES)) > 0)
		if (buf_append(ret, piece, (size_t)n) < 0)
			return archive_refuse(err, EFBIG, name, "is too large when unpacked");
	return n < 0 ? archive_refuse(err, EINVAL, name, "is damaged") : 0;
}

/* Contents of a directory (GNU's dumps, forged zips) would be unpacked to pass over them, without any bound. */
static int check_directory(struct archive *a, const char *name, struct error *err)
{
	char byte;
	ssize_t n = archive_read_data(a, &byte, 1);

	return n == 0 ? 0
		      : archive_refuse(err, EINVAL, name,
				       n < 0 ? "is damaged" : "is a directory with contents");
}

struct archive_reading {
	struct archive *archive;
	const struct archive_sink *sink;
	size_t entries_left, bytes_left;
};

static int take_archive_file(struct archive_reading *r, struct archive_entry *entry,
			     const char *name, struct error *err)
{
	_cleanup_buf_ struct buf data = { 0 };
	struct archive_file file = { .name = name,
				     .executable = archive_entry_perm(entry) & S_IXUSR };
	int e;

	buf_init(&data, MIN(r->bytes_left, (size_t)ARCHIVE_FILE_MAX));
	e = read_content(r->archive, name, &data, err);
	if (e < 0)
		return e;
	r->bytes_left -= data.len;
	file.data = (struct span){ data.data ? data.data : "", data.len };
	return r->sink->take(r->sink->data, &file, err);
}

static int take_entry(struct archive_reading *r, struct archive_entry *entry, struct error *err)
{
	_cleanup_free_ char *copy = NULL;
	const char *raw = archive_entry_pathname_utf8(entry);
	char *name;
	int e;

	if (!raw)
		return archive_refuse(err, EINVAL, archive_entry_pathname(entry),
				      "has a name that is no UTF-8");
	copy = strdup(raw);
	if (!copy)
		return error_oom(err);
	e = check_entry(entry, copy, err);
	if (e < 0)
		return e;
	name = strncmp(copy, "./", 2) == 0 ? copy + 2 : copy;
	if (archive_entry_filetype(entry) == S_IFDIR && (!*name || strcmp(name, ".") == 0))
		return check_directory(r->archive, ".", err);
	if (request_check_path(name, strlen(name), NULL) < 0)
		return archive_refuse(err, EINVAL, name,
				      "is not a relative file name without . and ..");
	if (archive_entry_filetype(entry) == S_IFDIR)
		return check_directory(r->archive, name, err);
	return take_archive_file(r, entry, name, err);
}

int archive_read_all(struct span packed, const struct archive_sink *sink, struct error *err)
{
	_cleanup_(archive_cleanup) struct archive *a = NULL;
	struct archive_reading reading = { .sink = sink,
					   .entries_left = ARCHIVE_ENTRIES_MAX,
					   .bytes_left = ARCHIVE_TOTAL_MAX };
	struct archive_entry *entry;
	int r = open_archive(packed, &a, err), e;

	if (r < 0)
		return r;
	reading.archive = a;
	while ((e = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		if (reading.entries_left-- == 0)
			return archive_refuse(err, EFBIG, NULL, "it has more than 4096 entries");
		r = take_entry(&reading, entry, err);
		if (r < 0)
			return r;
	}
	if (e != ARCHIVE_EOF)
		return archive_refuse(err, EINVAL, NULL, "it is damaged, or no tar, tar.gz or zip");
	return reading.entries_left == ARCHIVE_ENTRIES_MAX
		       ? archive_refuse(err, EINVAL, NULL, "it is empty")
		       : 0;
}
