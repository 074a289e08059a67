/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that follow a session, and what is counted of all sessions. */
#include "session/session-private.h"

#include "base/clock.h"

void session_listen(struct session *s, struct session_listener *l)
{
	const struct turn *running = s->life ? s->life->turn : NULL;

	l->session = s;
	l->next = s->listeners;
	s->listeners = l;
	if (running && !running->file.fn)
		l->on_execution(l->data, running->execution);
	for (const struct turn *t = s->first; t; t = t->next)
		if (!t->file.fn)
			l->on_execution(l->data, t->execution);
	session_set_due(s);
}

void session_unlisten(struct session_listener *l)
{
	struct session *s = TAKE_PTR(l->session);
	struct session_listener **at;

	if (!s)
		return;
	for (at = &s->listeners; *at != l;)
		at = &(*at)->next;
	*at = l->next;
	s->used_ns = clock_now_ns();
	session_set_due(s);
}

void session_tell_execution(struct session *s, const char *id)
{
	for (struct session_listener *l = s->listeners; l; l = l->next)
		l->on_execution(l->data, id);
}

void session_tell_closed(struct session *s)
{
	struct session_listener *l;

	while ((l = s->listeners)) {
		s->listeners = l->next;
		l->session = NULL;
		l->on_closed(l->data);
	}
}

bool session_calls_host(const struct session *s)
{
	return json_array_size(s->host_functions) > 0;
}

struct sessions_counts sessions_count(const struct sessions *all)
{
	struct sessions_counts counts = all->counts;

	for (const struct session *s = all->list; s; s = s->next)
		counts.live++;
	return counts;
}
