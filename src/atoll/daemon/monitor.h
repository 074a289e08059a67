/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll serve`: opens the listening sockets and the state directory, starts broker and front, waits, and
 * restarts a child that died.
 *
 *   monitor_serve ──▶ starting ──front says READY──▶ serving ──SIGTERM, SIGINT──▶ draining ──front ended──▶ stopping ──broker ended──▶ 0
 *                        │                             │ ▲                        │ again, or too long: front is killed
 *                        │                             └─┘ a child that died is started again, ever slower
 *                        └─ dies too often, or sends FAILED: a message, and the end
 */
#pragma once

#include "atoll/daemon/config.h"
#include "atoll/daemon/identity.h"
#include "base/buf.h"

/* Returns 0 after SIGTERM or SIGINT; negative with a message if it could not serve. */
int monitor_serve(const struct config_source *source, struct error *err) _must_check_;
/*
 * Judges settings, tokens and policies as monitor_serve() would, and appends what would be served, a line each. Nothing is made, opened
 * for writing or started; whether a port is free is not asked, because the daemon that these settings are for may have it.
 */
int monitor_check(const struct config_source *source, struct buf *out,
		  struct error *err) _must_check_;

/* The settings, judged: what a daemon needs to know before it makes or opens anything. */
int monitor_settle(const struct config_source *source, struct config *c, struct identity *id,
		   struct error *err) _must_check_;
