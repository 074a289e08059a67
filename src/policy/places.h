/* SPDX-License-Identifier: Apache-2.0 */
/* The part of decide() about places on the network (decision_each_place() is in policy.h). */
#pragma once

#include "policy/policy.h"

/* Refuses a place that the policy does not list, and more places or ports than one run may have. */
int places_check(const struct decision *d, struct error *err) _must_check_;
