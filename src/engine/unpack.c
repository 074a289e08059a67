/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See unpack.h. The archive's process may be an attacker's by the time it answers: names, numbers and sizes are held to the same
 * bounds here, and the end of its socket before an END refuses the archive.
 */
#include "engine/unpack.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "engine/archive-read.h"
#include "engine/unpacker.h"
#include "spec/request.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Without a byte. Processor time is bounded there; on a busy host that is a while. */
enum { STALL_S = 60, NAME_MAX_BYTES = 4096 };

static char *encode_file(struct span data, size_t *ret_len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)data.data;
	char *text = malloc((data.len + 2) / 3 * 4 + 1), *out = text;

	for (size_t i = 0; text && i < data.len; i += 3) {
		size_t left = data.len - i;
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

static json_t *file_to_json(struct span data, bool executable)
{
	json_t *text = json_stringn(data.data, data.len);
	json_t *file;

	if (text && !executable)
		return text;
	if (text) {
		file = json_pack("{s:o, s:s}", "text", text, "mode", "0755");
	} else { /* no UTF-8 */
		size_t len;
		_cleanup_free_ char *encoded = encode_file(data, &len);

		file = encoded ? json_pack("{s:s%, s:s}", "base64", encoded, len, "mode",
					   executable ? "0755" : "0644")
			       : NULL;
	}
	return file;
}

static int broken(struct error *err)
{
	return archive_refuse(
		err, EINVAL, NULL,
		"it cannot be unpacked: reading it fails, or takes too much time or memory");
}

static int send_all(int fd, const void *data, size_t n)
{
	for (const char *at = data; n > 0;) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -EPIPE;
		at += sent;
		n -= (size_t)sent;
	}
	return 0;
}

static int receive_all(int fd, void *data, size_t n)
{
	for (char *at = data; n > 0;) {
		ssize_t got = recv(fd, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

struct intake {
	json_t *files;
	size_t entries_left, bytes_left;
};

static bool is_within(const struct intake *in, const struct unpack_record *r)
{
	return in->entries_left > 0 && r->name_len > 0 && r->name_len < NAME_MAX_BYTES &&
	       r->size <= MIN(in->bytes_left, (size_t)ARCHIVE_FILE_MAX);
}

static int take_unpacked_file(int fd, struct intake *in, const struct unpack_record *r,
			      struct error *err)
{
	_cleanup_free_ char *data = NULL;
	char name[NAME_MAX_BYTES];

	if (!is_within(in, r))
		return broken(err);
	in->entries_left--;
	in->bytes_left -= r->size;
	data = malloc(r->size + 1);
	if (!data)
		return error_oom(err);
	if (receive_all(fd, name, r->name_len) < 0 || receive_all(fd, data, r->size) < 0)
		return broken(err);
	name[r->name_len] = '\0';
	if (strlen(name) != r->name_len || request_check_path(name, r->name_len, NULL) < 0)
		return broken(err);
	if (json_object_get(in->files, name))
		return archive_refuse(err, EINVAL, name, "is there twice");
	if (json_object_set_new(in->files, name,
				file_to_json((struct span){ data, r->size }, r->executable)) < 0)
		return error_oom(err);
	return 0;
}

/* Its sentence, without what would move a terminal's cursor. */
static int take_refusal(int fd, const struct unpack_record *r, struct error *err)
{
	char text[sizeof(err->text)];

	if (r->name_len >= sizeof(text) || receive_all(fd, text, r->name_len) < 0)
		return broken(err);
	text[r->name_len] = '\0';
	for (char *c = text; *c; c++)
		if (*c < ' ' && *c >= 0)
			*c = '?';
	(void)archive_refuse(err, r->errnum == EFBIG ? EFBIG : EINVAL, NULL, "");
	if (err)
		(void)snprintf(err->text, sizeof(err->text), "%s", text);
	return r->errnum == EFBIG ? -EFBIG : -EINVAL;
}

static int converse(int fd, struct span packed, json_t *files, struct error *err)
{
	struct intake in = { files, ARCHIVE_ENTRIES_MAX, ARCHIVE_TOTAL_MAX };
	const uint64_t n = packed.len;
	struct unpack_record record;
	int r = 0;

	if (send_all(fd, &n, sizeof(n)) < 0 || send_all(fd, packed.data, packed.len) < 0)
		return broken(err);
	while (r == 0) {
		if (receive_all(fd, &record, sizeof(record)) < 0)
			return broken(err);
		if (record.kind == UNPACK_END)
			return 0;
		if (record.kind == UNPACK_REFUSED)
			return take_refusal(fd, &record, err);
		r = record.kind == UNPACK_FILE ? take_unpacked_file(fd, &in, &record, err)
					       : broken(err);
	}
	return r;
}

int unpack_archive(int unpacker_fd, struct span packed, json_t *files, struct error *err)
{
	const struct timeval stall = { .tv_sec = STALL_S };
	_cleanup_close_ int fd = unpacker_connect(unpacker_fd);

	if (fd < 0)
		return error_set(err, ERROR_INTERNAL, -fd,
				 "archives cannot be unpacked, their process is gone: %s",
				 strerror(-fd));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof(stall));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof(stall));
	return converse(fd, packed, files, err);
}

int unpack_base64(int unpacker_fd, const json_t *text, json_t *files, struct error *err)
{
	_cleanup_free_ char *packed = NULL;
	size_t len = json_string_length(text), n;

	if (!json_is_string(text))
		return archive_refuse(err, EINVAL, NULL,
				      "it is no base64 text of a tar, tar.gz or zip");
	if (len / 4 * 3 > ARCHIVE_PACKED_MAX)
		return archive_refuse(err, EFBIG, NULL, "it is too large");
	packed = malloc(base64_decoded_max(len));
	if (!packed)
		return error_oom(err);
	if (base64_decode(json_string_value(text), len, packed, &n) < 0)
		return archive_refuse(err, EINVAL, NULL, "it is not valid base64");
	return unpack_archive(unpacker_fd, (struct span){ packed, n }, files, err);
}
