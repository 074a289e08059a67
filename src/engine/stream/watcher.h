/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchers of a stream: a cursor each, and the functions that wake its reader. A watcher pulls. Nothing is queued for it, so a
 * slow reader costs no memory and holds up neither the program nor other readers.
 *
 * An event wakes the watchers that have taken all before it, and looks at no others. Their readers should only note that there is
 * more, and take it later (web/http/ gives them turns): then an event costs the program little, however many readers it has.
 */
#pragma once

#include "engine/stream/event.h"
#include "engine/stream/stream.h"

#include <stdbool.h>

struct watcher_ops {
	void *data;
	/* After watcher_next() said 0: there may be more. From the loop, in the round in which it happened. */
	void (*on_ready)(void *data);
	void (*on_stdin)(void *data); /* there is room for input again; or NULL */
	/*
	 * The stream has ended and is not kept any longer for this reader: watcher_next() gives -ESTALE. A new watcher goes on
	 * behind the last id. From the loop; or NULL.
	 */
	void (*on_lost)(void *data);
};

/*
 * Behind the event `after` (an id or a number; NULL or "": from the beginning). -EINVAL: it is neither. The watcher takes a
 * reference on the owner of the stream.
 */
int watcher_new(struct stream *s, const char *after, struct watcher **ret) _must_check_;
struct watcher *watcher_free(struct watcher *w); /* NULL is fine; also from inside on_ready */
void watcher_set_ops(struct watcher *w, const struct watcher_ops *ops);
/* 1: an event, valid until the next call; 0: none now, on_ready follows; -ENODATA: the result was the last. Else: gone, lost. */
int watcher_next(struct watcher *w, struct event *ret) _must_check_;
/* As watcher_next() for a reader of the result alone: on_ready follows only when the stream has ended. */
int watcher_result(struct watcher *w, struct event *ret) _must_check_;
/* There is nothing behind where it is, nor will there ever be: it has the result. */
bool watcher_has_all(const struct watcher *w);
struct stream *watcher_stream(const struct watcher *w);
/* The reader may write to what runs. Once is enough. */
void watcher_attach(struct watcher *w);

/* All watchers of a stream. Each may be freed while it is told. */
void watchers_wake(struct stream *s);
void watchers_stdin(struct stream *s); /* there is room for input */
void watchers_lose(struct stream *s);  /* the stream is not kept for them any longer */
