/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many executions in one request: POST /v1/executions:batch accepts or refuses each of its jobs on its own, and
 * GET /v1/executions?ids= reads many back. The jobs of a batch are accepted in one transaction.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "web/routes/api-private.h"

enum {
	BATCH_MAX = 100,
	MANY_BYTES_MAX = 16 << 20,   /* results that one answer holds */
	ITEM_KEY_MAX = KEY_MAX + 22, /* a key of the batch, a space and any number */
};

/* {"problem": …}, with the id where there is one. */
static json_t *problem_item(const char *id, const struct error *err)
{
	const struct problem p = problem_from_error(err);

	return json_pack("{s:s*, s:o}", "id", id, "problem", problem_to_json(&p));
}

/* --- POST --- */

struct batch_item {
	struct batch *batch;
	struct execution *execution; /* a reference, until it is accepted or refused */
	json_t *answer;
};

struct batch {
	struct request_ctx *ctx;
	size_t n, unanswered; /* of the items, and one more until all are submitted */
	int32_t retry_after_s;
	struct batch_item items[];
};

static void batch_free(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		(void)execution_unref(b->items[i].execution);
		json_decref(b->items[i].answer);
	}
	free(b);
}

static int batch_respond(struct batch *b)
{
	struct request_ctx *ctx = b->ctx;
	json_t *list = json_array();
	int r = list ? 0 : -1;

	for (size_t i = 0; r == 0 && i < b->n; i++)
		r = json_array_append_new(list, TAKE_PTR(b->items[i].answer));
	response_retry_after(ctx, b->retry_after_s);
	batch_free(b);
	if (r < 0) {
		json_decref(list);
		return respond_no_memory(ctx);
	}
	return respond_json(ctx, 202, json_pack("{s:o}", "executions", list));
}

static void item_accepted(struct batch_item *item, const char *id, const struct execution *x)
{
	item->answer = json_pack("{s:s, s:s}", "id", id, "status", execution_phase(x));
}

static void item_refused(struct batch_item *item, const struct error *err)
{
	item->answer = problem_item(NULL, err);
	item->batch->retry_after_s = MAX(item->batch->retry_after_s, err->retry_after_s);
}

static void on_item_accepted(void *data, struct execution *x, const struct error *err)
{
	struct batch_item *item = data;
	struct batch *b = item->batch;

	if (err)
		item_refused(item, err);
	else
		item_accepted(item, execution_id(x), x);
	item->execution = execution_unref(item->execution);
	assert(b->unanswered > 0 && b->unanswered <= b->n + 1);
	if (--b->unanswered == 0)
		(void)batch_respond(b);
}

/* A repeated batch finds each of its jobs: each has a key that no other request can have. */
static void submit_item(struct batch_item *item, json_t *request, const char *key)
{
	struct request_ctx *ctx = item->batch->ctx;
	struct api *api = request_app(ctx);
	const struct submission in = {
		.caller = request_principal(ctx)->name,
		.request = request,
		.mode = SUBMIT_DETACHED,
		.key = key,
		.accepted_ns = request_started_ns(ctx),
		.data = item,
		.on_accepted = on_item_accepted,
	};
	struct submitted submitted = { 0 };
	struct error err = { 0 };

	if (engine_submit(api->engine, &in, &submitted, &err) < 0) {
		item_refused(item, &err);
	} else if (submitted.existing[0]) {
		struct execution *x = engine_find(api->engine, in.caller, submitted.existing);

		item_accepted(item, submitted.existing, x);
		(void)execution_unref(x);
	} else {
		item->execution = submitted.execution;
		item->batch->unanswered++;
	}
}

static void on_batch_gone(void *data, enum gone how)
{
	struct batch *b = data;

	if (how != GONE_SERVER)
		return;
	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].execution)
			execution_forget(b->items[i].execution);
	batch_free(b);
}

static int submit_batch(struct request_ctx *ctx, const json_t *list, const char *key)
{
	size_t n = json_array_size(list);
	struct batch *b = calloc(1, sizeof(*b) + n * sizeof(*b->items));
	char item_key[ITEM_KEY_MAX];

	if (!b)
		return respond_no_memory(ctx);
	b->ctx = ctx;
	b->n = n;
	b->unanswered = 1;
	for (size_t i = 0; i < n; i++) {
		b->items[i].batch = b;
		(void)snprintf(item_key, sizeof(item_key), "%s %zu", key, i + 1);
		submit_item(&b->items[i], json_array_get(list, i), *key ? item_key : NULL);
	}
	if (--b->unanswered == 0)
		return batch_respond(b);
	response_on_gone(ctx, on_batch_gone, b);
	return 0;
}

static int post_batch(struct request_ctx *ctx)
{
	const json_t *body = request_json(ctx), *list = json_object_get(body, "executions");
	size_t n = json_array_size(list);
	char key[KEY_MAX + 1];

	if (n == 0 || n > BATCH_MAX || json_object_size(body) != 1)
		return respond_field(ctx, "executions",
				     "executions: give {\"executions\": […]} with 1 to %d "
				     "requests as of POST /v1/executions, and no other key.",
				     BATCH_MAX);
	if (request_key(ctx, key) < 0)
		return respond_bad_key(ctx);
	return submit_batch(ctx, list, key);
}

/* --- GET --- */

/* The result of one, or its state, or why it is neither. */
static int add_one(struct request_ctx *ctx, const char *id, struct buf *out)
{
	struct api *api = request_app(ctx);
	_cleanup_free_ char *text = NULL;
	struct error err = { 0 };
	json_t *item;
	int r = engine_get_text(api->engine, request_viewer(ctx), id, &text, &err);

	if (r >= 0 && out->len + strlen(text) > MANY_BYTES_MAX)
		r = error_set(&err, ERROR_TOO_LARGE, EFBIG,
			      "the results are too large together; ask for this one alone");
	if (r < 0) {
		free(text);
		item = problem_item(id, &err);
		text = item ? json_dumps(item, JSON_COMPACT) : NULL;
		json_decref(item);
	}
	if (!text)
		return -ENOMEM;
	return buf_puts(out, text);
}

int respond_many(struct request_ctx *ctx)
{
	_cleanup_free_ char *ids = strdup(request_query(ctx, "ids"));
	_cleanup_buf_ struct buf out = { 0 };
	char *next = ids, *id;
	size_t n = 0, length;
	int r;

	if (request_uri(ctx)->n_pairs != 1)
		return respond_field(ctx, "ids", "ids: it cannot be combined with a filter.");
	buf_init(&out, 2 * MANY_BYTES_MAX);
	r = ids ? buf_puts(&out, "{\"executions\":[") : -ENOMEM;
	while (r == 0 && (id = strsep(&next, ",")) && n++ < BATCH_MAX) {
		r = n > 1 ? buf_puts(&out, ",") : 0;
		if (r == 0)
			r = add_one(ctx, id, &out);
	}
	if (n > BATCH_MAX)
		return respond_field(ctx, "ids", "ids: give at most %d, with commas between.",
				     BATCH_MAX);
	if (r == 0)
		r = buf_puts(&out, "],\"next\":null}");
	if (r < 0)
		return respond_no_memory(ctx);
	length = out.len;
	return respond_take(ctx, 200, "application/json", buf_take(&out), length);
}

const struct route batch_routes[] = {
	{ HTTP_POST, "/v1/executions:batch", post_batch, "createExecutions",
	  "Accept many jobs, each on its own", .flags = ROUTE_JSON | ROUTE_SLOW,
	  .request_schema = "Batch", .response_schema = "BatchAccepted" },
	{ 0 },
};
