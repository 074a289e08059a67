/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll serve`: opens the doors and the state directory, starts broker and front, waits, and starts again what died.
 *
 *   monitor_serve ──▶ starting ──front says READY──▶ serving ──SIGTERM, SIGINT──▶ draining ──front ended──▶ stopping ──broker ended──▶ 0
 *                        │                             │ ▲                        │ again, or too long: front is killed
 *                        │                             └─┘ what died is started again, ever slower
 *                        └─ dies too often, or says that it cannot: a sentence, and the end
 */
#pragma once

#include "daemon/config.h"

/* Until it is told to end; then 0. Negative with a sentence: it could not serve. */
int monitor_serve(const struct config_source *source, struct error *err) _must_check_;
