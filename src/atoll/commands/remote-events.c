/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See remote.h. Events of an execution come as lines of JSON, with output as text. When a stream turns out to
 * hold bytes that no text can hold ("binary"), it is read as bytes from that position on, whenever an event
 * says that there is more.
 */
#include "atoll/commands/remote.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"

enum { LINE_BYTES_MAX = 256 << 20 };

struct remote_stream {
	int fd;
	const char *name;
	int64_t at; /* bytes passed on */
	bool raw;
};

struct events_reading {
	struct remote_follow *f;
	struct buf line;
	struct remote_stream streams[2];
	char id[64];
	bool muted; /* the output cannot be written */
};

static void pass_on(struct events_reading *g, const struct remote_stream *s, const char *bytes,
		    size_t n)
{
	if (!g->muted && n > 0 && g->f->output(g->f->data, s->fd, bytes, n) < 0) {
		g->muted = true;
		http_client_hang_up(g->f->client);
	}
}

/* Reads the bytes after those passed on. */
static int read_raw(struct events_reading *g, struct remote_stream *s, struct error *err)
{
	_cleanup_http_client_ struct http_client *c = NULL;
	struct remote_target target;
	struct span piece;
	char range[48], rest[16];
	int r;

	(void)snprintf(rest, sizeof(rest), "/%s", s->name);
	(void)snprintf(range, sizeof(range), "bytes=%lld-", (long long)s->at);
	r = remote_target(g->f->remote, g->id, rest, &target, err);
	if (r == 0)
		r = remote_call(g->f->remote,
				&(struct http_call){ .method = HTTP_GET,
						     .target = target.text,
						     .accept = "*/*",
						     .range = range },
				&c, err);
	if (r == -ERANGE) { /* there are no more */
		*err = (struct error){ 0 };
		return 0;
	}
	while (r == 0 && (r = http_client_read(c, &piece, err)) > 0) {
		pass_on(g, s, piece.data, piece.len);
		s->at += (int64_t)piece.len;
		r = 0;
	}
	return r;
}

static int on_remote_output(struct events_reading *g, struct remote_stream *s, const json_t *event,
			    struct error *err)
{
	const json_t *text = json_object_get(event, "data");
	const char *bytes = json_string_value(text);
	json_int_t offset = json_integer_value(json_object_get(event, "offset"));
	size_t n = json_string_length(text);

	if (!g->f->output || !bytes)
		return 0;
	s->raw = s->raw || json_is_true(json_object_get(event, "binary"));
	if (s->raw) /* bytes before `at` came with an earlier read */
		return offset < s->at ? 0 : read_raw(g, s, err);
	pass_on(g, s, bytes, n);
	s->at += (int64_t)n;
	return 0;
}

static int on_result(struct events_reading *g, const json_t *event, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(g->streams); i++)
		if (g->streams[i].raw && !g->muted)
			r = read_raw(g, &g->streams[i], err);
	if (r == 0)
		g->f->result = json_incref(json_object_get(event, "data"));
	return r;
}

static int on_event(struct events_reading *g, const json_t *event, struct error *err)
{
	const char *name = text_of(event, "event");

	if (strcmp(name, "start") == 0)
		(void)snprintf(g->id, sizeof(g->id), "%s",
			       text_of(json_object_get(event, "data"), "id"));
	for (size_t i = 0; i < ARRAY_SIZE(g->streams); i++)
		if (strcmp(name, g->streams[i].name) == 0)
			return on_remote_output(g, &g->streams[i], event, err);
	if (strcmp(name, "stage") == 0 && g->f->stage)
		g->f->stage(g->f->data);
	if (strcmp(name, "output") == 0 && g->f->rich && !g->muted)
		g->f->rich(g->f->data, json_object_get(event, "data"));
	return strcmp(name, "result") == 0 ? on_result(g, event, err) : 0;
}

/* Handles whole lines; the rest stays for later. */
static int take_lines(struct events_reading *g, struct span piece, struct error *err)
{
	const char *end;
	int r = 0;

	while (r == 0 && piece.len > 0) {
		end = memchr(piece.data, '\n', piece.len);
		size_t n = end ? (size_t)(end - piece.data) : piece.len;

		r = buf_append(&g->line, piece.data, n);
		if (r < 0)
			return error_set(err, ERROR_INTERNAL, -r, "an event is larger than %d MiB",
					 LINE_BYTES_MAX >> 20);
		piece.data += n + (end ? 1 : 0);
		piece.len -= n + (end ? 1 : 0);
		if (end && g->line.len > 0) {
			json_t *event = json_loadb(g->line.data, g->line.len, JSON_ALLOW_NUL, NULL);

			r = on_event(g, event, err);
			json_decref(event);
			g->line.len = 0;
		}
	}
	return r;
}

int remote_follow(struct remote_follow *f, struct error *err)
{
	struct events_reading g = { .f = f,
				    .streams = { { .fd = STDOUT_FILENO, .name = "stdout" },
						 { .fd = STDERR_FILENO, .name = "stderr" } } };
	struct span piece;
	int r;

	buf_init(&g.line, LINE_BYTES_MAX);
	while ((r = http_client_read(f->client, &piece, err)) > 0) {
		r = take_lines(&g, piece, err);
		if (r < 0)
			break;
	}
	buf_done(&g.line);
	if (r == 0 && !f->result)
		r = error_set(err, ERROR_INTERNAL, EPROTO,
			      "the daemon ended before the program did; see its log");
	return r;
}

int remote_output_plain(void *data _unused_, int fd, const char *bytes, size_t n)
{
	return print_raw(fd, bytes, n);
}
