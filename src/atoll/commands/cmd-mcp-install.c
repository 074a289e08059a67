/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll mcp install`: adds Atoll to an MCP client's own configuration. mcp-hosts.h knows the clients, config-text.h inserts the entry.
 *
 * The file is read whole and replaced in one step, with a copy of the old one beside it. A symbolic link stays one: the file that the link
 * names is replaced. The new file has the old one's mode and owner.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/mcp-hosts.h"
#include "base/fd.h"

enum { INSTALL_LIST_MAX = 256 << 10, CONTEXT_LINES = 3, BACKUPS_MAX = 10 };
#define MCP_SERVER_NAME "atoll"

struct install_options {
	const char *client, *file, *url;
	bool list, json, dry_run, replace;
};

/* A client's file as it is, and as it will be. */
struct install_file {
	char path[PATH_MAX];
	struct buf text; /* "" when it is not there */
	struct buf new_text;
	bool exists;
	struct stat seen; /* when it was read */
};

static void install_file_done(struct install_file *file)
{
	buf_done(&file->text);
	buf_done(&file->new_text);
}
#define _cleanup_file_ _cleanup_(install_file_done)

static int install_failed(const char *what, const char *path, int errnum, struct error *err)
{
	return error_set(err, ERROR_STORAGE, errnum, "cannot %s %s: %s", what, path,
			 strerror(errnum));
}

/* --- reading --- */

static int install_read(struct install_file *file, const char *path, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat link;
	int r;

	buf_init(&file->text, CONFIG_TEXT_MAX);
	if (buf_puts(&file->text, "") < 0)
		return error_oom(err);
	if (!realpath(path, file->path)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return install_failed("open", path, errno, err);
		if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
			return error_set(err, ERROR_INPUT, ENOENT,
					 "%s is a symbolic link to a file that is not there", path);
		(void)snprintf(file->path, sizeof(file->path), "%s", path);
		return 0;
	}
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &file->seen) < 0)
		return install_failed("open", path, errno, err);
	if (!S_ISREG(file->seen.st_mode))
		return error_set(err, ERROR_INPUT, EINVAL, "%s is not a file", path);
	r = buf_read_fd(&file->text, fd);
	if (r < 0)
		return install_failed("read", path, -r, err);
	file->exists = true;
	return 0;
}

/* The client starts Atoll with its own PATH and directory: the entry names the program by its whole path. */
static int install_own_path(char ret[static PATH_MAX], struct error *err)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot read /proc/self/exe: %s",
				 strerror(errno));
	ret[n] = '\0';
	return 0;
}

/* Reads the client's file and makes its new text. An enum config_change, or negative with a message that names the file. */
static int install_prepare(struct install_file *file, const struct mcp_host *client,
			   const struct install_options *o, struct error *err)
{
	struct config_entry entry = { client->table, MCP_SERVER_NAME, NULL, o->replace };
	json_auto_t *value = NULL;
	char self[PATH_MAX] = "", path[PATH_MAX];
	int r = 0;

	if (o->url && !client->http)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s starts its servers itself and takes no --url", client->title);
	if (!o->url)
		r = install_own_path(self, err);
	if (r == 0 && !o->file)
		r = mcp_host_path(client, path, err);
	if (r == 0)
		r = install_read(file, o->file ?: path, err);
	if (r < 0)
		return r;
	value = entry.value = mcp_host_entry(o->url ? client->http : client->stdio,
					     o->url ? o->url : self);
	if (!value)
		return error_oom(err);
	buf_init(&file->new_text, CONFIG_TEXT_MAX + INSTALL_LIST_MAX);
	r = client->format->set((struct span){ file->text.data, file->text.len }, &entry,
				&file->new_text, err);
	return r < 0 ? error_wrap(err, r, "cannot add Atoll to %s", file->path) : r;
}

/* --- replacing --- */

/* A new file with the mode and the owner of the old one. Only root can give a file away: for others it is their own already. */
static int install_write(const struct install_file *file, const char *path, const struct buf *text,
			 struct error *err)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return errno == EEXIST ? -EEXIST
				       : install_failed("write beside", file->path, errno, err);
	r = fd_write_all(fd, text->data, text->len);
	if (r == 0 && file->exists && fchown(fd, file->seen.st_uid, file->seen.st_gid) < 0 &&
	    errno != EPERM)
		r = -errno;
	if (r == 0 && fchmod(fd, file->exists ? file->seen.st_mode & 07777 : 0600) < 0)
		r = -errno;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlink(path);
	return install_failed("write beside", file->path, -r, err);
}

static int install_backup(const struct install_file *file, char ret[static PATH_MAX],
			  struct error *err)
{
	time_t now = time(NULL);
	struct tm utc;
	char stamp[32];
	int r = -EEXIST;

	(void)gmtime_r(&now, &utc);
	(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
	for (int i = 0; r == -EEXIST && i < BACKUPS_MAX; i++) {
		char number[8] = "";

		if (i > 0)
			(void)snprintf(number, sizeof(number), "-%d", i);
		if (snprintf(ret, PATH_MAX, "%s.%s%s.bak", file->path, stamp, number) >= PATH_MAX)
			r = error_set(err, ERROR_INPUT, ENAMETOOLONG, "%s is too long a name",
				      file->path);
		else
			r = install_write(file, ret, &file->text, err);
	}
	if (r < 0)
		ret[0] = '\0';
	return r == -EEXIST ? error_set(err, ERROR_STORAGE, EEXIST,
					"%s has too many copies beside it", file->path)
			    : r;
}

/* The client may have written its file since it was read. */
static int install_check_unchanged(const struct install_file *file, struct error *err)
{
	const struct stat *seen = &file->seen;
	struct stat now;
	bool there = stat(file->path, &now) == 0;

	if (there == file->exists &&
	    (!there || (now.st_ino == seen->st_ino && now.st_size == seen->st_size &&
			now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
			now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec)))
		return 0;
	return error_set(err, ERROR_CONFLICT, EBUSY,
			 "%s was changed by another program meanwhile; run the command again",
			 file->path);
}

/* Makes the directories above the file, too. backup: the name of the copy, or "" when there was nothing to copy. */
static int install_replace(const struct install_file *file, char backup[static PATH_MAX],
			   struct error *err)
{
	char fresh[PATH_MAX];
	int r;

	backup[0] = '\0';
	if (snprintf(fresh, sizeof(fresh), "%s.%d.new", file->path, (int)getpid()) >= PATH_MAX)
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "%s is too long a name",
				 file->path);
	for (char *slash = strchr(fresh + 1, '/'); slash && !file->exists;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(fresh, 0777) < 0 && errno != EEXIST)
			return install_failed("make the directory", fresh, errno, err);
		*slash = '/';
	}
	(void)unlink(fresh); /* of a process of this number that was killed */
	r = install_write(file, fresh, &file->new_text, err);
	if (r < 0)
		return r;
	if (file->exists)
		r = install_backup(file, backup, err);
	if (r == 0)
		r = install_check_unchanged(file, err);
	if (r == 0 && rename(fresh, file->path) < 0)
		r = install_failed("replace", file->path, errno, err);
	if (r < 0) {
		(void)unlink(fresh);
		if (*backup)
			(void)unlink(backup);
	}
	return r;
}

/* --- what would change --- */

/* The offset behind the line that begins at `at`; before the line that ends there. */
static size_t diff_line_end(struct span text, size_t at)
{
	const char *end = at < text.len ? memchr(text.data + at, '\n', text.len - at) : NULL;

	return end ? (size_t)(end - text.data) + 1 : text.len;
}

static size_t diff_line_begin(struct span text, size_t at)
{
	for (at -= at > 0; at > 0 && text.data[at - 1] != '\n';)
		at--;
	return at;
}

/* How many lines were put, or negative. */
static int diff_put(struct buf *out, char mark, struct span text, size_t from, size_t to)
{
	int n = 0, r = 0;

	for (size_t end; r == 0 && from < to; from = end, n++) {
		end = diff_line_end(text, from);
		r = buf_append(out, &mark, 1);
		if (r == 0)
			r = buf_append(out, text.data + from, end - from);
		if (r == 0 && text.data[end - 1] != '\n')
			r = buf_puts(out, "\n\\ No newline at end of file\n");
	}
	return r < 0 ? r : n;
}

/* A unified diff with one hunk. */
static int install_diff(const struct install_file *file, struct buf *out)
{
	const struct span a = { file->text.data, file->text.len },
			  b = { file->new_text.data, file->new_text.len };
	_cleanup_buf_ struct buf body = { .max = 3 * CONFIG_TEXT_MAX };
	size_t same = 0, a_end = a.len, b_end = b.len, from, to, n;
	int first = 1, before, removed, added, behind;

	while (same < a.len && (n = diff_line_end(a, same)) == diff_line_end(b, same) &&
	       memcmp(a.data + same, b.data + same, n - same) == 0) {
		same = n;
		first++;
	}
	while (a_end > same && b_end > same) {
		n = a_end - diff_line_begin(a, a_end);
		if (n != b_end - diff_line_begin(b, b_end) || n > MIN(a_end, b_end) - same ||
		    memcmp(a.data + a_end - n, b.data + b_end - n, n) != 0)
			break;
		a_end -= n;
		b_end -= n;
	}
	from = same;
	to = a_end;
	for (int i = 0; i < CONTEXT_LINES; i++) {
		from = diff_line_begin(a, from);
		to = diff_line_end(a, to);
	}
	before = diff_put(&body, ' ', a, from, same);
	removed = diff_put(&body, '-', a, same, a_end);
	added = diff_put(&body, '+', b, same, b_end);
	behind = diff_put(&body, ' ', a, a_end, to);
	if (before < 0 || removed < 0 || added < 0 || behind < 0)
		return -ENOMEM;
	first -= before;
	removed += before + behind;
	added += before + behind;
	return buf_printf(out, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n%s",
			  file->exists ? file->path : "/dev/null", file->path,
			  removed > 0 ? first : first - 1, removed, added > 0 ? first : first - 1,
			  added, body.data ?: "");
}

static int install_print(const struct page *out, struct error *err)
{
	int r = out->error;

	if (r == 0)
		r = print_text(STDOUT_FILENO, (struct span){ out->text.data, out->text.len });
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot write to standard output: %s",
				 strerror(-r))
		     : 0;
}

/* --- one client --- */

static int install_entry(const struct install_options *o, struct error *err)
{
	_cleanup_file_ struct install_file file = { .exists = false };
	_cleanup_page_ struct page diff = PAGE_EMPTY;
	const struct mcp_host *client = mcp_host_find(o->client, err);
	int r = client ? install_prepare(&file, client, o, err) : -EINVAL;
	char backup[PATH_MAX];

	if (r < 0)
		return r;
	if (r == CONFIG_SAME) {
		say("%s has Atoll already, in %s", client->title, file.path);
		return 0;
	}
	if (o->dry_run) {
		diff.error = install_diff(&file, &diff.text);
		return install_print(&diff, err);
	}
	r = install_replace(&file, backup, err);
	if (r < 0)
		return r;
	say("added Atoll to %s, in %s; restart %s", client->title, file.path, client->title);
	if (*backup)
		say("the file as it was is %s", backup);
	return 0;
}

/* --- the list --- */

static json_t *snippet_text(const struct mcp_host *client, const char *template, const char *value)
{
	_cleanup_buf_ struct buf out = { .max = INSTALL_LIST_MAX };
	json_auto_t *entry = template ? mcp_host_entry(template, value) : NULL;

	if (!template)
		return json_null();
	if (!entry || client->format->print(&(struct config_entry){ client->table, MCP_SERVER_NAME,
								    entry, false },
					    &out) < 0)
		return NULL;
	return json_stringn(out.data, out.len);
}

static json_t *describe_client(const struct mcp_host *client, const char *self)
{
	static const struct install_options none = { 0 };
	_cleanup_file_ struct install_file file = { .exists = false };
	struct error err = { 0 };
	int r = install_prepare(&file, client, &none, &err);
	const char *state = r == CONFIG_SAME			? "added"
			    : r == CONFIG_ADDED && !file.exists ? "no file"
			    : r == CONFIG_ADDED			? "not added"
			    : r == -EEXIST			? "other entry"
								: "cannot be read";

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "name", client->name, "title",
			 client->title, "file", file.path, "state", state, "format",
			 client->format->name, "snippet", snippet_text(client, client->stdio, self),
			 "http_snippet",
			 snippet_text(client, client->http, "http://127.0.0.1:8700/mcp"));
}

static int list_clients(const struct install_options *o, struct error *err)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_free_ char *text = NULL;
	char self[PATH_MAX] = "";
	json_auto_t *all = json_array();
	int r = install_own_path(self, err);

	for (size_t i = 0; r == 0 && i < mcp_hosts_n; i++) {
		json_t *one = describe_client(&mcp_hosts[i], self);

		if (json_array_append_new(all, one) < 0)
			r = error_oom(err);
		else if (!o->json)
			page_add(&out, "%-15s %-15s %s\n", mcp_hosts[i].name, text_of(one, "state"),
				 text_of(one, "file"));
	}
	if (r < 0)
		return r;
	text = o->json ? json_dumps(all, JSON_COMPACT) : NULL;
	if (o->json)
		page_add(&out, "{\"clients\": %s}\n", text ?: "");
	return install_print(&out, err);
}

#define TEXT(flag, argument, member, help)                                                         \
	OPTION_TEXT(flag, 0, argument, struct install_options, member, help)
#define SWITCH(flag, member, help) OPTION_SWITCH(flag, 0, struct install_options, member, help)

static const struct option install_rows[] = {
	TEXT("--client", "NAME", client, "the client to add Atoll to"),
	SWITCH("--list", list, "list the clients, their files and whether Atoll is there"),
	SWITCH("--json", json, "with --list: print JSON, with the snippet of each client"),
	SWITCH("--dry-run", dry_run, "print what would change, as a diff, and change nothing"),
	TEXT("--file", "FILE", file, "another file of that client, such as a project's .mcp.json"),
	TEXT("--url", "URL", url,
	     "let the client connect to a daemon's /mcp instead of starting `atoll mcp`"),
	SWITCH("--replace", replace, "replace a server named 'atoll' that says something else"),
};
static const struct option_list install_list = { OPTION_ROWS(install_rows) };

static int install_main(struct invocation *in)
{
	const struct install_options *o = in->data;
	struct error err = { 0 };
	int r;

	if (!o->list && !o->client)
		r = error_set(
			&err, ERROR_INPUT, EINVAL,
			"--client NAME is missing; `atoll mcp install --list` lists the clients");
	else
		r = o->list ? list_clients(o, &err) : install_entry(o, &err);
	return r < 0 ? say_error(&err) : 0;
}

const struct command cmd_mcp_install = {
	.name = "mcp install",
	.usage = "--client NAME [OPTIONS]",
	.summary = "add Atoll to an MCP client's configuration",
	.details = "The entry is inserted into the client's file as text: comments, order and "
		   "layout stay. The file\nas it was is kept beside it.\n",
	.options = &install_list,
	.size = sizeof(struct install_options),
	.main = install_main,
};
