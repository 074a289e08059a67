/* SPDX-License-Identifier: Apache-2.0 */
/* See text-file.h. Each function is one hand-over to the worker: what it needs is in a struct on the waiting fiber's stack. */
#include "engine/text-file.h"

#include "base/fd.h"
#include "base/loop/worker.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t text_bytes_max = 1LL << 30;

struct saving {
	struct span text;
	int fd;
	bool full;
	int r;
};

static void save(void *data)
{
	struct saving *s = data;

	s->r = fd_write_all(s->fd, s->text.data, s->text.len);
	if (s->r == 0 && s->full && fdatasync(s->fd) < 0)
		s->r = -errno;
}

int text_save(const struct text_place *place, struct span text)
{
	_cleanup_close_ int fd = history_output_create(place->history, place->id, place->which);
	struct saving s = { .text = text, .fd = fd, .full = place->full };

	if (fd < 0)
		return fd;
	worker_call(WORKER_ALWAYS, save, &s);
	if (s.r < 0)
		(void)history_output_delete(place->history, place->id, place->which);
	return s.r;
}

int64_t text_saved_bytes(const struct text_place *place)
{
	_cleanup_close_ int fd = history_output_open(place->history, place->id, place->which);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_size : 0;
}

struct loading {
	int fd;
	char *text; /* read from fd, unless it is there already */
	bool wants_json;
	json_t *json;
	int r;
};

static int read_text(struct loading *l)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int64_t at = 0;

	if (fstat(l->fd, &st) < 0)
		return -errno;
	if (st.st_size > text_bytes_max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (at < st.st_size) {
		ssize_t n = pread(l->fd, text + at, (size_t)(st.st_size - at), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
	}
	text[at] = '\0';
	l->text = TAKE_PTR(text);
	return 0;
}

static void load_text(void *data)
{
	struct loading *l = data;

	if (!l->text)
		l->r = read_text(l);
	if (l->r == 0 && l->wants_json) {
		l->json = json_loads(l->text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
		l->r = l->json ? 0 : -EIO;
	}
}

static int load_any(const struct text_place *place, char **row, struct loading *l)
{
	_cleanup_close_ int fd = -EBADF;

	l->text = TAKE_PTR(*row);
	if (l->text && !*l->text) {
		free(l->text);
		l->text = NULL;
		fd = history_output_open(place->history, place->id, place->which);
		if (fd < 0)
			return fd;
	} else if (!l->text) {
		return -ENOENT;
	}
	l->fd = fd;
	worker_call(fd >= 0 ? WORKER_ALWAYS : strlen(l->text), load_text, l);
	return l->r;
}

int text_load(const struct text_place *place, char **row, char **ret)
{
	struct loading l = { .fd = -EBADF };
	int r = load_any(place, row, &l);

	if (r < 0)
		free(l.text);
	else
		*ret = l.text;
	return r;
}

int text_load_json(const struct text_place *place, char **row, json_t **ret)
{
	struct loading l = { .fd = -EBADF, .wants_json = true };
	int r = load_any(place, row, &l);

	free(l.text);
	if (r == 0)
		*ret = l.json;
	return r;
}

struct text_parsing {
	struct span text;
	json_t *tree;
};

static void parse_json_text(void *data)
{
	struct text_parsing *p = data;

	p->tree = json_loadb(p->text.data, p->text.len, JSON_ALLOW_NUL, NULL);
}

json_t *text_parse(struct span text)
{
	struct text_parsing p = { .text = text };

	worker_call(text.len, parse_json_text, &p);
	return p.tree;
}

struct dumping {
	json_t *tree;
	size_t flags;
	char *text;
};

static void dump(void *data)
{
	struct dumping *d = data;

	d->text = json_dumps(d->tree, JSON_COMPACT | JSON_ENCODE_ANY | d->flags);
}

char *text_dump(json_t *tree, size_t flags)
{
	struct dumping d = { .tree = tree, .flags = flags };

	worker_call(WORKER_ALWAYS, dump, &d);
	return d.text;
}
