/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What routes have beside their rows, for /openapi.json: parameters, further bodies, answers and refusals. A row holds for the
 * operations that it lists (struct route's `operation`, one blank between). Each table ends with an empty row. Types are those of
 * spec/schema.h.
 */
#pragma once

#include "web/http/router.h"

#include <jansson.h>

struct api_tag {
	const char *prefix; /* of the patterns that it holds for; the first one that fits counts */
	const char *name, *help;
};

/* A parameter that is not in the path. */
struct api_parameter {
	const char *operations, *in, *name, *type, *help;
};

/* A body that is not JSON of the route's request_schema. */
struct api_body {
	const char *operations, *media, *type;
};

/* What there is to say of an operation's body. */
struct api_note {
	const char *operations, *text;
};

/* An answer that is not 200 with JSON of the route's response_schema. */
struct api_answer {
	const char *operations;
	int status;		  /* 0: any other */
	const char *media, *type; /* NULL: no body */
	const char *help;	  /* NULL: the route's summary */
};

enum api_refused { REFUSED_LISTED, REFUSED_ALL, REFUSED_GUARDED, REFUSED_NAMED, REFUSED_WITH_BODY };

/* A problem+json answer: components/responses has it under its name. */
struct api_refusal {
	int status; /* 0: any other */
	const char *name, *help;
	enum api_refused when;
	const char *operations; /* of REFUSED_LISTED */
};

extern const struct api_tag api_tags[];
extern const struct api_parameter api_parameters[];
extern const struct api_body api_bodies[];
extern const struct api_note api_body_notes[];
extern const struct api_answer api_answers[];
extern const struct api_refusal api_refusals[];

/* OpenAPI 3.1, made from the router's table and these. It lists exactly the routes that exist. NULL: no memory. */
json_t *openapi_make(const struct router *router);
