/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon refuses, as an error of this process: the codes of its problems (web/http/problem.h) in one table. */
#pragma once

#include "atoll/remote/http-client.h"

#include <jansson.h>

/* {"code", "detail"} of what answers at `where`; status 0: it came as a packet. Always negative. */
int refusal_from_json(const json_t *tree, const char *where, int status, struct error *err);
/* The same of an answer other than 2xx, whose body is read. */
int refusal_from_answer(struct http_client *c, struct error *err);
