/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching executions: finding the stream of one that lives or has ended, and what a stream asks of the execution that owns it
 * (engine/stream/stream.h).
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "spec/utf8-json.h"

static int on_file(void *owner)
{
	struct error err = { 0 };

	return execution_ensure_row(owner, &err);
}

static void on_detached(void *owner)
{
	deadline_detached(owner);
}

static void ref_owner(void *owner)
{
	(void)execution_ref(owner);
}

static void unref_owner(void *owner)
{
	(void)execution_unref(owner);
}

const struct stream_ops execution_stream_ops = { on_file, on_detached, ref_owner, unref_owner };

int engine_watch(struct engine *e, const char *caller, struct engine_place place,
		 struct watcher **ret, struct error *err)
{
	struct execution *x = engine_find(e, caller, place.id);
	bool ended = !x;
	int r = ended ? readback_load(e, caller, place.id, &x) : 0;

	if (r < 0)
		return query_say(err, r, ERROR_INTERNAL);
	/* While this fiber waited for the reading, other watchers may have lost the copy. */
	if (ended)
		readback_add(x);
	/* Readers of events have no use for the tree. */
	if (execution_has_ended(x)) {
		json_decref(x->record.result);
		x->record.result = NULL;
	}
	r = watcher_new(&x->stream, place.after, ret);
	(void)execution_unref(x);
	if (r == -EINVAL)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "give the id of an event of this execution.");
	return r < 0 ? query_say(err, r, ERROR_INTERNAL) : 0;
}

struct execution *watcher_execution(struct watcher *w)
{
	return watcher_stream(w)->owner;
}

json_t *event_to_json(const struct event *ev)
{
	char time[32];
	bool binary = false;
	json_t *root;

	clock_format_utc(ev->time_ns, time, sizeof(time));
	root = json_pack("{s:s, s:I, s:s}", "event", event_name(ev->kind), "seq",
			 (json_int_t)ev->seq, "time", time);
	if (!root || ev->kind == EVENT_RESULT)
		return root;
	if (ev->body) {
		if (json_object_set(root, "data", ev->body) == 0)
			return root;
	} else if (json_object_set_new(root, "data",
				       utf8_to_json(ev->bytes.data, ev->bytes.len, &binary)) == 0 &&
		   json_object_set_new(root, "offset", json_integer(ev->offset)) == 0 &&
		   (!binary || json_object_set_new(root, "binary", json_true()) == 0)) {
		return root;
	}
	json_decref(root);
	return NULL;
}
