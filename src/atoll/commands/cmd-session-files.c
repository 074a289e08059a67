/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll session logs`, `files`, `put` and `get`: what a session has printed, and files of its work directory. */
#include "atoll/commands/cmd-session.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote-ids.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/uri.h"

enum { FILE_BYTES_MAX = 32 << 20, FILES_TEXT_MAX = 32 << 20, PATH_TEXT_MAX = 3 * 4096 };

static const struct option file_rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list file_list = { .rows = file_rows,
					      .n = ARRAY_SIZE(file_rows),
					      .word = remote_add_id };

/* --- logs --- */

static int logs_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_ids ids = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *logs = NULL;
	int code, r = 0;

	if (remote_begin(self, &args, &ids, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &ids, 1) < 0)
		return EXIT_OURS;
	if (session_json(&remote, &(struct session_call){ ids.ids[0], HTTP_GET, "/logs", { 0 } },
			 &logs, &err) < 0)
		return say_error(&err);
	if (ids.remote.json) {
		code = remote_print_json(logs);
	} else {
		const json_t *out = json_object_get(logs, "stdout");
		const json_t *errors = json_object_get(logs, "stderr");

		r = print_text(STDOUT_FILENO,
			       (struct span){ json_string_value(out), json_string_length(out) });
		if (r == 0)
			r = print_text(STDERR_FILENO, (struct span){ json_string_value(errors),
								     json_string_length(errors) });
		if (json_is_true(json_object_get(logs, "truncated")))
			say("the session has printed more than it keeps; the middle was left out");
		code = r < 0 ? EXIT_OURS : 0;
	}
	json_decref(logs);
	return code;
}

const struct command cmd_session_logs = {
	.name = "session logs",
	.usage = "ID",
	.summary = "print everything that a session has printed",
	.details = "Control characters are escaped; with --json they are JSON's escapes.\n",
	.options = &file_list,
	.main = logs_main,
};

/* --- files --- */

static int print_files(const json_t *files)
{
	static const struct column columns[] = {
		{ .title = "TYPE" },
		{ .title = "SIZE", .right = true },
		{ .title = "PATH" },
	};
	_cleanup_table_ struct table t = { 0 };
	_cleanup_buf_ struct buf out = { 0 };
	const json_t *file;
	char size[32];
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	buf_init(&out, FILES_TEXT_MAX);
	json_array_foreach(files, i, file)
	{
		text_bytes(json_object_get(file, "size"), size, sizeof(size));
		r = r < 0 ? r : table_add(&t, text_of(file, "type"));
		r = r < 0 ? r : table_add(&t, size);
		r = r < 0 ? r : table_add(&t, text_of(file, "path"));
	}
	if (r == 0)
		r = table_print(&t, &out);
	if (r < 0) {
		say("cannot print the list: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&out);
}

static int files_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_ids ids = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *page = NULL;
	int code;

	if (remote_begin(self, &args, &ids, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &ids, 1) < 0)
		return EXIT_OURS;
	if (session_json(&remote, &(struct session_call){ ids.ids[0], HTTP_GET, "/files", { 0 } },
			 &page, &err) < 0)
		return say_error(&err);
	code = ids.remote.json ? remote_print_json(page)
			       : print_files(json_object_get(page, "files"));
	json_decref(page);
	return code;
}

const struct command cmd_session_files = {
	.name = "session files",
	.usage = "ID",
	.summary = "list files of a session's work directory",
	.options = &file_list,
	.main = files_main,
};

const struct command cmd_session_ls = {
	.name = "session ls",
	.usage = "ID",
	.summary = "list files of a session's work directory",
	.options = &file_list,
	.main = files_main,
	.hidden = true,
};

/* --- put and get --- */

/* "/files/" and the path, of which slashes stay. */
static int file_rest(const char *path, struct buf *ret)
{
	struct span rest = span_of(path), part;
	int r = buf_puts(ret, "/files");

	while (r == 0 && span_split(&rest, '/', &part)) {
		r = buf_puts(ret, "/");
		if (r == 0)
			r = uri_encode(ret, part);
	}
	return r;
}

static int file_target(const struct remote *remote, const char *word, const char *path,
		       struct session_target *ret, struct error *err)
{
	_cleanup_buf_ struct buf rest = { 0 };

	buf_init(&rest, PATH_TEXT_MAX);
	if (file_rest(path, &rest) < 0)
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "'%.100s' is too long", path);
	return session_target(remote, word, rest.data, ret, err);
}

static int put_file(const struct remote *remote, const struct remote_ids *ids, struct error *err)
{
	const char *source = ids->ids[1], *slash = strrchr(source, '/');
	const char *dest = ids->n > 2 ? ids->ids[2] : slash ? slash + 1 : source;
	_cleanup_buf_ struct buf bytes = { 0 }, nothing = { 0 };
	struct session_target target;
	int r;

	if (ids->n < 3 && strcmp(source, "-") == 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "standard input has no name; say DEST, the file's name in the "
				 "session");
	buf_init(&bytes, FILE_BYTES_MAX);
	r = host_file_read(source, FILE_BYTES_MAX, &bytes, err);
	if (r == 0)
		r = file_target(remote, ids->ids[0], dest, &target, err);
	if (r == 0)
		r = remote_text(
			remote,
			&(struct http_call){ .method = HTTP_PUT,
					     .target = target.text,
					     .content_type = "application/octet-stream",
					     .body = { bytes.data ? bytes.data : "", bytes.len } },
			&nothing, err);
	return r < 0 && err->code == ERROR_NOT_FOUND ? session_missing(ids->ids[0], err) : r;
}

static int open_copy(const char *path, struct error *err)
{
	int fd = strcmp(path, "-") == 0
			 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
			 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);

	return fd < 0 ? error_set(err, ERROR_INPUT, errno, "cannot write '%.200s': %s", path,
				  strerror(errno))
		      : fd;
}

static int get_file(const struct remote *remote, const struct remote_ids *ids, struct error *err)
{
	const char *path = ids->ids[1], *slash = strrchr(path, '/');
	const char *copy = ids->n > 2 ? ids->ids[2] : slash ? slash + 1 : path;
	_cleanup_http_client_ struct http_client *c = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct session_target target;
	struct span piece;
	int r = file_target(remote, ids->ids[0], path, &target, err), written = 0;

	if (r == 0)
		r = remote_call(remote,
				&(struct http_call){ .method = HTTP_GET,
						     .target = target.text,
						     .accept = "*/*" },
				&c, err);
	if (r < 0 && err->code == ERROR_NOT_FOUND)
		return error_set(
			err, ERROR_NOT_FOUND, ENOENT,
			"there is no file '%.100s' in session '%.64s', or no such session; "
			"`atoll session files ID` lists files",
			path, ids->ids[0]);
	if (r == 0)
		r = fd = open_copy(copy, err);
	while (r >= 0 && written == 0 && (r = http_client_read(c, &piece, err)) > 0)
		written = print_raw(fd, piece.data, piece.len);
	if (written < 0)
		return error_set(err, ERROR_STORAGE, -written, "cannot write '%.200s': %s", copy,
				 strerror(-written));
	return MIN(r, 0);
}

/* `put` and `get`: an id, a file, and perhaps the copy's name. */
static int copy_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_ids ids = { 0 };
	struct error err = { 0 };
	struct remote remote;
	int code, r;

	if (remote_begin(self, &args, &ids, &remote, &code) < 0)
		return code;
	if (ids.n < 2 || ids.n > 3) {
		say("`atoll %s` takes %s; see --help", self->name, self->usage);
		return EXIT_OURS;
	}
	r = self == &cmd_session_put ? put_file(&remote, &ids, &err)
				     : get_file(&remote, &ids, &err);
	return r < 0 ? say_error(&err) : 0;
}

static const struct option copy_rows[] = { REMOTE_URL };
static const struct option_list copy_list = { .rows = copy_rows,
					      .n = ARRAY_SIZE(copy_rows),
					      .word = remote_add_id };

const struct command cmd_session_put = {
	.name = "session put",
	.usage = "ID FILE [DEST]",
	.summary = "copy a file into a session's work directory",
	.details =
		"FILE - is standard input. DEST is relative to the work directory [FILE's name].\n",
	.options = &copy_list,
	.main = copy_main,
};

const struct command cmd_session_get = {
	.name = "session get",
	.usage = "ID PATH [FILE]",
	.summary = "copy a file out of a session's work directory",
	.details = "PATH is relative to the work directory. FILE - is standard output [PATH's last "
		   "name].\n",
	.options = &copy_list,
	.main = copy_main,
};
