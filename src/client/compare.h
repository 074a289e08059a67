/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a program's output with the expected one, as contest judges do. */
#pragma once

#include "spec/request.h"

/* By the rules of a checker that is no program. On a fiber, large outputs are compared on the worker. -ENOMEM. */
int outputs_match(const struct request_checker *checker, struct span got, struct span expected,
		  bool *ret) _must_check_;
