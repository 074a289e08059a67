/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a program's output with the expected one, as contest judges do. */
#pragma once

#include "spec/request.h"
#include "spec/result.h"

/*
 * By the rules of a checker that is no program. They match if ret->line is 0; otherwise *ret is the first difference, whose
 * texts are to be freed. On a fiber, large outputs are compared on the worker. -ENOMEM.
 */
int outputs_compare(const struct request_checker *checker, struct span got, struct span expected,
		    struct result_difference *ret) _must_check_;
