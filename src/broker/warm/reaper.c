/* SPDX-License-Identifier: Apache-2.0 */
/* See reaper.h. A timer checks the sandboxes: no request depends on how soon one is gone. */
#include "broker/warm/reaper.h"

#include "base/clock.h"
#include "base/fd.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 3, LOOK_SELDOM_MS = 1000, LOOKS_OFTEN = 1000 };

struct grave {
	struct grave *next;
	struct sandbox *sandbox;
	unsigned looks;
};

struct reaper {
	struct grave *first;
	struct source *timer;
};

/*
 * A zygote may clone a sandbox after the pool has discarded it. Its greeting then names its process, which is
 * killed. True: there is no process to wait for.
 */
static bool never_came(struct sandbox *sb)
{
	struct error err = { 0 };
	char byte;

	if (sb->pid > 0 || sb->control_fd < 0)
		return sb->pid == 0;
	if (recv(sb->control_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return false;
	if (sandbox_arrive(sb, &err) == 0 || sb->pid > 0) {
		sandbox_kill(sb);
		return false;
	}
	/* The socket was closed, or holds a report why the clone failed. */
	sb->control_fd = fd_close(sb->control_fd);
	return true;
}

/* True: nothing is left of the sandbox, and it is freed. */
static bool is_gone(struct sandbox *sb)
{
	if (sb->pid == 0 && !never_came(sb))
		return false;
	if (sb->pid > 0 && waitpid(sb->pid, NULL, WNOHANG) == 0) {
		sandbox_kill(sb);
		return false;
	}
	sb->pid = 0;
	sb->control_fd = fd_close(sb->control_fd);
	if (sandbox_vacate(sb) == -EBUSY)
		return false;
	sandbox_free(sb);
	return true;
}

/* Checks all sandboxes. Returns the milliseconds until the next check. */
static int64_t look(struct reaper *g)
{
	int64_t ms = LOOK_SELDOM_MS;

	for (struct grave **at = &g->first; *at;) {
		struct grave *grave = *at;

		if (is_gone(grave->sandbox)) {
			*at = grave->next;
			free(grave);
			continue;
		}
		at = &grave->next;
		if (grave->looks++ < LOOKS_OFTEN)
			ms = LOOK_MS;
		else
			/* A sandbox that arrives later finds its control socket closed and ends by itself. */
			grave->sandbox->control_fd = fd_close(grave->sandbox->control_fd);
	}
	return ms;
}

static int on_timer(void *data, uint32_t events)
{
	struct reaper *g = data;
	int64_t ms = look(g);

	(void)events;
	if (g->first)
		source_set_time(g->timer, clock_now_ns() + ms * NS_PER_MS);
	return 0;
}

int reaper_new(struct loop *loop, struct reaper **ret)
{
	struct reaper *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_timer, g }, &g->timer);
	if (r < 0) {
		free(g);
		return r;
	}
	*ret = g;
	return 0;
}

struct reaper *reaper_free(struct reaper *g)
{
	if (!g)
		return NULL;
	for (int tries = 0; g->first && tries < 2000; tries++) {
		(void)look(g);
		(void)usleep(1000);
	}
	/* The groups of these stay behind: a broker removes them later (sandbox_host_sweep). */
	while (g->first) {
		struct grave *grave = g->first;

		g->first = grave->next;
		sandbox_free(grave->sandbox);
		free(grave);
	}
	g->timer = source_free(g->timer);
	free(g);
	return NULL;
}

void reaper_take(struct reaper *g, struct sandbox *sb)
{
	struct grave *grave = sb ? calloc(1, sizeof(*grave)) : NULL;

	if (!sb)
		return;
	sandbox_kill(sb);
	if (!grave) {
		sandbox_destroy(sb);
		return;
	}
	grave->sandbox = sb;
	grave->next = g->first;
	/*
	 * If there are other sandboxes, the timer is armed. Setting it again each time would put it off for
	 * ever.
	 */
	if (!g->first)
		source_set_time(g->timer, clock_now_ns() + LOOK_MS * NS_PER_MS);
	g->first = grave;
}
