/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll mcp install`: adds Atoll to an MCP client's own configuration. mcp-hosts.h knows the clients, config-text.h inserts the
 * entry, config-file.h replaces the file.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/config-file.h"
#include "atoll/commands/mcp-hosts.h"

enum { INSTALL_LIST_MAX = 256 << 10 };

struct install_options {
	const char *client, *file, *url;
	bool list, json, dry_run, replace;
};

/* One client, its file, and the entry that belongs there. */
struct install_target {
	const struct mcp_host *client;
	struct config_file file;
	struct config_entry entry;
	json_t *value; /* of the entry */
};

static void target_done(struct install_target *target)
{
	config_file_done(&target->file);
	json_decref(target->value);
}
#define _cleanup_target_ _cleanup_(target_done)

/* The client starts Atoll with its own PATH and directory: the entry names the program by its whole path. */
static int own_path(char ret[static PATH_MAX], struct error *err)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot read /proc/self/exe: %s",
				 strerror(errno));
	ret[n] = '\0';
	return 0;
}

static int target_entry(struct install_target *target, const struct install_options *o,
			struct error *err)
{
	const struct mcp_host *client = target->client;
	char self[PATH_MAX] = "";

	if (o->url && !client->http)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s starts its servers itself and takes no --url", client->title);
	if (!o->url && own_path(self, err) < 0)
		return -EINVAL;
	target->value = mcp_host_entry(o->url ? client->http : client->stdio,
				       o->url ? o->url : self);
	if (!target->value)
		return error_oom(err);
	target->entry = (struct config_entry){ .table = client->table,
					       .name = MCP_SERVER_NAME,
					       .value = target->value,
					       .replace = o->replace };
	return 0;
}

static int target_open(struct install_target *target, const struct install_options *o,
		       struct error *err)
{
	char path[PATH_MAX];
	int r = target_entry(target, o, err);

	if (r == 0 && o->file)
		return config_file_read(&target->file, o->file, err);
	if (r == 0)
		r = mcp_host_path(target->client, path, err);
	return r < 0 ? r : config_file_read(&target->file, path, err);
}

/* An enum config_change and the file's new text, or negative with a message that names the file. */
static int target_change(struct install_target *target, struct buf *out, struct error *err)
{
	struct span text = { target->file.text.data, target->file.text.len };
	int r;

	buf_init(out, CONFIG_TEXT_MAX + INSTALL_LIST_MAX);
	r = mcp_host_set(target->client, text, &target->entry, out, err);
	return r < 0 ? error_wrap(err, r, "cannot add Atoll to %s", target->file.path) : r;
}

/* --- one client --- */

static int print_whole(const struct page *out, struct error *err)
{
	int r = out->error
			? out->error
			: print_text(STDOUT_FILENO, (struct span){ out->text.data, out->text.len });

	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot write to standard output: %s",
				 strerror(-r))
		     : 0;
}

static int show_change(const struct install_target *target, const struct buf *text,
		       struct error *err)
{
	_cleanup_page_ struct page diff = PAGE_EMPTY;

	diff.error = config_file_diff(&target->file, (struct span){ text->data, text->len },
				      &diff.text);
	return print_whole(&diff, err);
}

static int write_change(const struct install_target *target, const struct buf *text,
			struct error *err)
{
	char backup[PATH_MAX];
	int r = config_file_replace(&target->file, text, backup, err);

	if (r < 0)
		return r;
	say("added Atoll to %s, in %s; restart %s", target->client->title, target->file.path,
	    target->client->title);
	if (*backup)
		say("the file as it was is %s", backup);
	return 0;
}

static int install_entry(const struct install_options *o, struct error *err)
{
	_cleanup_target_ struct install_target target = { .client = mcp_host_find(o->client, err) };
	_cleanup_buf_ struct buf text = { 0 };
	int r = target.client ? target_open(&target, o, err) : -EINVAL;

	if (r == 0)
		r = target_change(&target, &text, err);
	if (r == CONFIG_SAME) {
		say("%s has Atoll already, in %s", target.client->title, target.file.path);
		return 0;
	}
	if (r < 0)
		return r;
	return o->dry_run ? show_change(&target, &text, err) : write_change(&target, &text, err);
}

/* --- the list --- */

/* What is known of a client without changing anything. */
static const char *target_state(struct install_target *target)
{
	static const struct install_options none = { 0 };
	_cleanup_buf_ struct buf text = { 0 };
	struct error err = { 0 };
	int r = target_open(target, &none, &err);

	if (r == 0 && !target->file.exists)
		return "no file";
	if (r == 0)
		r = target_change(target, &text, &err);
	return r == CONFIG_SAME	   ? "added"
	       : r == CONFIG_ADDED ? "not added"
	       : r == -EEXIST	   ? "other entry"
				   : "cannot be read";
}

static json_t *snippet_text(const struct mcp_host *client, const char *template, const char *value)
{
	_cleanup_buf_ struct buf out = { .max = INSTALL_LIST_MAX };
	json_t *entry = template ? mcp_host_entry(template, value) : NULL, *text = NULL;
	struct config_entry e = { .table = client->table, .name = MCP_SERVER_NAME, .value = entry };

	if (entry && mcp_host_print(client, &e, &out) == 0)
		text = json_stringn(out.data, out.len);
	else if (!template)
		text = json_null();
	json_decref(entry);
	return text;
}

static json_t *describe_client(const struct mcp_host *client, const char *self)
{
	_cleanup_target_ struct install_target target = { .client = client };
	const char *state = target_state(&target);

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "name", client->name, "title",
			 client->title, "file", target.file.path, "state", state, "format",
			 client->toml ? "toml" : "json", "snippet",
			 snippet_text(client, client->stdio, self), "http_snippet",
			 snippet_text(client, client->http, "http://127.0.0.1:8700/mcp"));
}

static int list_clients(const struct install_options *o, struct error *err)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_free_ char *text = NULL;
	char self[PATH_MAX] = "";
	json_t *all = json_array(), *one;
	size_t i;
	int r = all ? own_path(self, err) : error_oom(err);

	for (i = 0; r == 0 && i < mcp_hosts_n; i++)
		if (json_array_append_new(all, describe_client(&mcp_hosts[i], self)) < 0)
			r = error_oom(err);
	if (r == 0 && o->json)
		text = json_dumps(all, JSON_COMPACT);
	if (o->json)
		page_add(&out, "{\"clients\": %s}\n", text ?: "");
	else
		json_array_foreach(all, i, one)
			page_add(&out, "%-15s %-15s %s\n", text_of(one, "name"),
				 text_of(one, "state"), text_of(one, "file"));
	json_decref(all);
	if (r == 0 && o->json && !text)
		r = error_oom(err);
	return r < 0 ? r : print_whole(&out, err);
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
		   "layout stay. "
		   "The file\nas it was is kept beside it.\n",
	.options = &install_list,
	.size = sizeof(struct install_options),
	.main = install_main,
};
