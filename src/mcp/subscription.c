/* SPDX-License-Identifier: Apache-2.0 */
/* See call.h. Resources that change are those of living executions: a subscription watches the execution's stream. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "mcp/mcp-private.h"

enum {
	SUBSCRIPTIONS_PER_OWNER = 64,
	TELL_EVERY_MS = 500, /* of one resource */
	EVENTS_PER_TURN = 64,
};

struct mcp_subscription {
	struct mcp_subscription *next;
	struct mcp *mcp;
	struct mcp_client *client; /* legacy; or */
	struct mcp_call *call;	   /* modern: the request that listens */
	struct charge charge;
	struct watcher *watcher; /* NULL: nothing more will change */
	struct source *timer;
	int64_t told_ns;
	bool is_task, dirty;
	char execution[32];
	char uri[]; /* or the task's id */
};

/* --- messages --- */

void mcp_client_say(struct mcp_client *c, json_t *message)
{
	_cleanup_free_ char *text = mcp_message_text(message);
	struct mcp_stream *s = NULL;
	char event[REPLAY_ID] = "";

	if (!text)
		return;
	if (c->id[0]) {
		s = mcp_stream_find(&c->replay, 0);
		if (!s)
			s = mcp_stream_new(&c->replay, true);
		if (!s)
			return;
		mcp_stream_keep(s, span_of(text), event);
	}
	if (s && s->door.ops)
		s->door.ops->say(s->door.data, event, span_of(text));
	else if (!s && c->door.ops)
		c->door.ops->say(c->door.data, event, span_of(text));
}

/* Every message of a stream that listens names it. */
static void listener_say(struct mcp_call *call, const char *method, json_t *params)
{
	if (!params)
		params = json_object();
	(void)json_object_set_new(params, "_meta",
				  json_pack("{s:O}", MCP_META_LISTEN, call->message.id));
	mcp_call_say(call, mcp_make_notification(method, params));
}

static void subscription_tell(const struct mcp_subscription *s, const char *method, json_t *params)
{
	if (s->call)
		listener_say(s->call, method, params);
	else
		mcp_client_say(s->client, mcp_make_notification(method, params));
}

static void tell_change(struct mcp_subscription *s)
{
	json_auto_t *execution = NULL;
	struct error err = { 0 };

	s->dirty = false;
	s->told_ns = clock_now_ns();
	if (!s->is_task)
		subscription_tell(s, "notifications/resources/updated",
				  json_pack("{s:s}", "uri", s->uri));
	else if (engine_get(s->mcp->options.engine, NULL, s->execution, &execution, &err) == 0)
		subscription_tell(s, "notifications/tasks", mcp_task_state(s->uri, execution));
}

/* --- watching --- */

static void subscription_free(struct mcp_subscription **at)
{
	struct mcp_subscription *s = *at;

	*at = s->next;
	s->watcher = watcher_free(s->watcher);
	s->timer = source_free(s->timer);
	charge_done(&s->charge);
	free(s);
}

/* Takes what has happened. A task is told of at its end only. */
static void subscription_follow(struct mcp_subscription *s)
{
	struct event event;
	int r = 1;

	for (int i = 0; s->watcher && i < EVENTS_PER_TURN && r > 0; i++) {
		r = watcher_next(s->watcher, &event);
		if (r > 0)
			s->dirty = s->dirty || !s->is_task || event.kind == EVENT_RESULT;
		if (r < 0 || event.kind == EVENT_RESULT) {
			s->watcher = watcher_free(s->watcher);
			r = 0;
		}
	}
	if (s->dirty && (!s->watcher || clock_now_ns() >= s->told_ns + TELL_EVERY_MS * NS_PER_MS))
		tell_change(s);
	if (r > 0)
		source_set_time(s->timer, clock_now_ns());
	else if (s->dirty)
		source_set_time(s->timer, s->told_ns + TELL_EVERY_MS * NS_PER_MS);
}

static void on_subscribed(void *data)
{
	subscription_follow(data);
}

static int on_subscription_time(void *data, uint32_t events _unused_)
{
	subscription_follow(data);
	return 0;
}

static void on_subscribed_lost(void *data)
{
	struct mcp_subscription *s = data;

	s->watcher = watcher_free(s->watcher);
}

/* An execution that has ended a while ago does not change, and neither does a resource that is no execution's. */
static int watch_execution(struct mcp_subscription *s, const char *viewer)
{
	const struct watcher_ops ops = { .data = s,
					 .on_ready = on_subscribed,
					 .on_lost = on_subscribed_lost };
	struct execution *x = s->execution[0]
				      ? engine_find(s->mcp->options.engine, viewer, s->execution)
				      : NULL;
	int r = 0;

	if (x && !execution_has_ended(x))
		r = engine_watch(s->mcp->options.engine, viewer,
				 (struct engine_place){ s->execution, NULL }, &s->watcher, NULL);
	(void)execution_unref(x);
	if (r < 0 || !s->watcher)
		return r;
	watcher_set_ops(s->watcher, &ops);
	return loop_add_timer(s->mcp->options.loop, clock_now_ns(),
			      (struct handler){ on_subscription_time, s }, &s->timer);
}

static bool is_owned(const struct mcp_subscription *s, const struct mcp_client *client,
		     const struct mcp_call *call)
{
	return client ? s->client == client : s->call == call;
}

/* What is subscribed to, by a call for itself (modern) or for its client. */
struct subject {
	const char *uri;
	const char *execution; /* or NULL */
	bool is_task;
};

static int subscription_add(struct mcp_call *call, struct subject to, struct error *err)
{
	struct mcp *m = call->mcp;
	struct mcp_client *client = call->era == MCP_LEGACY ? call->client : NULL;
	const struct slot_demand demand = { SLOT_MCP_LISTENS, 1, 5 };
	struct caller *caller = call->charges.call.caller;
	struct mcp_subscription *s;
	int r = caller_check(m->options.callers, caller, demand, err);
	size_t owned = 0;

	for (s = m->subscriptions; s; s = s->next)
		owned += is_owned(s, client, call);
	if (r == 0 && owned >= SUBSCRIPTIONS_PER_OWNER)
		r = error_set(err, ERROR_BUSY, EBUSY, "at most %d subscriptions at once",
			      SUBSCRIPTIONS_PER_OWNER);
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s) + strlen(to.uri) + 1);
	if (!s)
		return error_oom(err);
	s->mcp = m;
	s->client = client;
	s->call = client ? NULL : call;
	s->is_task = to.is_task;
	memcpy(s->uri, to.uri, strlen(to.uri) + 1);
	(void)snprintf(s->execution, sizeof(s->execution), "%s", to.execution ? to.execution : "");
	s->next = m->subscriptions;
	m->subscriptions = s;
	charge_take(&s->charge, m->options.callers, caller, SLOT_MCP_LISTENS, 1);
	if (watch_execution(s, mcp_call_viewer(call)) == 0)
		return 0;
	subscription_free(&m->subscriptions);
	return error_oom(err);
}

static void subscription_drop(struct mcp *m, const struct mcp_client *client,
			      const struct mcp_call *call, const char *uri)
{
	struct mcp_subscription **at = &m->subscriptions;

	while (*at)
		if (is_owned(*at, client, call) && (!uri || strcmp((*at)->uri, uri) == 0))
			subscription_free(at);
		else
			at = &(*at)->next;
}

void mcp_unsubscribe_all(struct mcp *m, const struct mcp_client *client,
			 const struct mcp_call *call)
{
	subscription_drop(m, client, call, NULL);
}

/* --- legacy: resources/subscribe --- */

/* The row of params.uri; NULL: the call is answered. */
static const struct mcp_resource *subject_row(struct mcp_call *call, const json_t *params)
{
	const char *text = mcp_plain_text(json_object_get(params, "uri"));
	const struct mcp_resource *row =
		text ? mcp_resource_find(call->mcp, text, &call->resource.uri, &call->resource.text)
		     : NULL;

	if (!text)
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.uri: give a URI", NULL);
	else if (!row)
		mcp_call_no_resource(call, text);
	return row;
}

int mcp_answer_subscribe(struct mcp_call *call, const json_t *params)
{
	const struct mcp_resource *row = subject_row(call, params);
	struct subject to;
	struct error err = { 0 };

	if (!row)
		return 0;
	to = (struct subject){ call->resource.uri.text,
			       row->is_execution ? mcp_uri_value(&call->resource.uri, "id") : NULL,
			       false };
	subscription_drop(call->mcp, call->client, NULL, to.uri);
	if (subscription_add(call, to, &err) < 0)
		mcp_call_error(call, &err);
	else
		mcp_call_result(call, json_object());
	return 0;
}

int mcp_answer_unsubscribe(struct mcp_call *call, const json_t *params)
{
	if (!subject_row(call, params))
		return 0;
	subscription_drop(call->mcp, call->client, NULL, call->resource.uri.text);
	mcp_call_result(call, json_object());
	return 0;
}

/* --- modern: subscriptions/listen --- */

static const struct list_change {
	enum mcp_change change;
	const char *wish, *method;
} list_changes[] = {
	{ MCP_TOOLS_CHANGED, "toolsListChanged", "notifications/tools/list_changed" },
	{ MCP_PROMPTS_CHANGED, "promptsListChanged", "notifications/prompts/list_changed" },
	{ MCP_RESOURCES_CHANGED, "resourcesListChanged", "notifications/resources/list_changed" },
};

static void honour_lists(struct mcp_call *call, const json_t *wishes, json_t *honoured)
{
	for (size_t i = 0; i < ARRAY_SIZE(list_changes); i++) {
		const struct list_change *c = &list_changes[i];

		if (!json_is_true(json_object_get(wishes, c->wish)) ||
		    c->change == MCP_RESOURCES_CHANGED || !mcp_lists_may_change(call->mcp))
			continue;
		call->listens_to |= c->change;
		(void)json_object_set_new(honoured, c->wish, json_true());
	}
}

static int honour_resource(struct mcp_call *call, const char *text, struct error *err)
{
	struct mcp_uri uri;
	_cleanup_free_ char *work = NULL;
	const struct mcp_resource *row = mcp_resource_find(call->mcp, text, &uri, &work);

	if (!row)
		return -ENOENT;
	return subscription_add(
		call,
		(struct subject){ text, row->is_execution ? mcp_uri_value(&uri, "id") : NULL,
				  false },
		err);
}

static int honour_task(struct mcp_call *call, const char *id, struct error *err)
{
	const char *execution = mcp_task_execution(call, id);

	return execution ? subscription_add(call, (struct subject){ id, execution, true }, err)
			 : -ENOENT;
}

struct wish {
	const char *key;
	int (*honour)(struct mcp_call *call, const char *text, struct error *err);
};

/* Those that are not there are left out of what is honoured. */
static void honour_each(struct mcp_call *call, const json_t *wishes, json_t *honoured,
			struct wish wish)
{
	const json_t *list = json_object_get(wishes, wish.key);
	json_t *kept = json_array(), *item;
	struct error ignored = { 0 };
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *text = mcp_plain_text(item);

		if (text && wish.honour(call, text, &ignored) == 0)
			(void)json_array_append(kept, item);
	}
	if (json_is_array(list))
		(void)json_object_set(honoured, wish.key, kept);
	json_decref(kept);
}

static void end_listening(void *data)
{
	struct mcp_call *call = data;

	mcp_call_result(call, json_pack("{s:{s:O}}", "_meta", MCP_META_LISTEN, call->message.id));
}

int mcp_answer_listen(struct mcp_call *call, const json_t *params)
{
	static const struct mcp_call_ops ops = { .cancel = end_listening };
	const struct slot_demand demand = { SLOT_MCP_LISTENS, 1, 5 };
	const json_t *wishes = json_object_get(params, "notifications");
	json_t *honoured;
	struct error err = { 0 };

	if (!json_is_object(wishes)) {
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.notifications: give an object",
			      NULL);
		return 0;
	}
	if (caller_check(call->mcp->options.callers, call->charges.call.caller, demand, &err) < 0) {
		mcp_call_error(call, &err);
		return 0;
	}
	honoured = json_object();
	if (!honoured)
		return -ENOMEM;
	charge_take(&call->charges.listens, call->mcp->options.callers, call->charges.call.caller,
		    SLOT_MCP_LISTENS, 1);
	honour_lists(call, wishes, honoured);
	honour_each(call, wishes, honoured,
		    (struct wish){ "resourceSubscriptions", honour_resource });
	honour_each(call, wishes, honoured, (struct wish){ "taskIds", honour_task });
	mcp_call_set(call, call, &ops);
	/* The first message: a subscription says nothing before the loop's next round. */
	listener_say(call, "notifications/subscriptions/acknowledged",
		     json_pack("{s:o}", "notifications", honoured));
	return 0;
}

/* --- lists --- */

void mcp_lists_changed(struct mcp *m, enum mcp_change change)
{
	const struct list_change *c = list_changes;

	while (c->change != change)
		c++;
	for (struct mcp_client *client = m->clients; client; client = client->next)
		if (client->version)
			mcp_client_say(client, mcp_make_notification(c->method, NULL));
	for (struct mcp_call *call = m->calls; call; call = call->next)
		if (call->listens_to & change)
			listener_say(call, c->method, NULL);
}

void mcp_listeners_end(struct mcp *m)
{
	struct mcp_call *next;

	for (struct mcp_call *call = m->calls; call; call = next) {
		next = call->next;
		if (call->charges.listens.amount > 0)
			end_listening(call);
	}
}
