/* SPDX-License-Identifier: Apache-2.0 */
/* The part of decide() about destinations on the network (decision_each_destination() is in policy.h). */
#pragma once

#include "plan/policy/policy.h"

/* Refuses a destination that the policy does not list, and more destinations or ports than one run may have. */
int destinations_check(const struct decision *d, struct error *err) _must_check_;
