/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs of a program: its streams so far (Range works while it runs, too), the list of its files, one file,
 * or all files as a tar that is made while it is sent. The headers make a browser save the bytes, never show
 * them.
 */
#include <string.h>

#include "web/routes/api-private.h"

#define BYTES "application/octet-stream"

static int get_stream(struct request_ctx *ctx)
{
	const enum engine_stream stream = (enum engine_stream)request_route(ctx)->which;
	struct api *api = request_app(ctx);
	struct engine_file file = { .fd = -EBADF };
	const struct engine_output which = { request_param(ctx, "id"), stream };
	struct error err = { 0 };
	int r = engine_output(api->engine, request_viewer(ctx), which, &file, &err);

	if (r < 0)
		return respond_error(ctx, &err);
	/* Whether these are all bytes that the stream will ever have. */
	(void)!response_header(ctx, "Atoll-Complete", file.growing || file.cut ? "false" : "true");
	return respond_file(ctx, &(struct file_body){ file.fd, file.size_bytes, BYTES });
}

static int get_value(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };

	if (engine_value(api->engine, request_viewer(ctx), request_param(ctx, "id"), &file, &err) <
	    0)
		return respond_error(ctx, &err);
	return respond_file(ctx,
			    &(struct file_body){ file.fd, file.size_bytes, "application/json" });
}

/* --- all files as a tar --- */

static ssize_t read_tar(void *data, void *bytes, size_t n)
{
	return tarball_read(data, bytes, n);
}

static void free_tar(void *data)
{
	(void)tarball_free(data);
}

static int respond_tar(struct request_ctx *ctx)
{
	static const struct piece_head head = { 200, "application/x-tar", -1 };
	struct api *api = request_app(ctx);
	struct tarball *tarball = NULL;
	struct error err = { 0 };
	int r = engine_tarball(api->engine, request_viewer(ctx), request_param(ctx, "id"), &tarball,
			       &err);

	if (r < 0)
		return respond_error(ctx, &err);
	(void)!response_attachment(ctx, "files.tar");
	return respond_pieces(ctx, &head, (struct piece_source){ tarball, read_tar, free_tar });
}

static int get_files(struct request_ctx *ctx)
{
	bool as_tar;

	if (request_other_form(ctx, (struct other_form){ "tar", "application/x-tar" }, &as_tar) < 0)
		return 0;
	return as_tar ? respond_tar(ctx) : respond_asked(ctx, engine_files);
}

static int get_file(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	const struct engine_path which = { request_param(ctx, "id"), request_param(ctx, "path") };
	struct engine_file file = { .fd = -EBADF };
	struct error err = { 0 };
	int r = engine_file(api->engine, request_viewer(ctx), which, &file, &err);

	if (r < 0)
		return respond_error(ctx, &err);
	(void)!response_attachment(ctx, which.path);
	return respond_file(ctx, &(struct file_body){ file.fd, file.size_bytes, BYTES });
}

const struct route output_routes[] = {
	{ HTTP_GET, "/v1/executions/{id}/stdout", get_stream, .which = ENGINE_STDOUT,
	  .operation = "getExecutionStdout", .flags = ROUTE_SLOW,
	  .summary = "Whole standard output of an execution" },
	{ HTTP_GET, "/v1/executions/{id}/stderr", get_stream, .which = ENGINE_STDERR,
	  .operation = "getExecutionStderr", .flags = ROUTE_SLOW,
	  .summary = "Whole standard error of an execution" },
	{ HTTP_GET, "/v1/executions/{id}/value", get_value, .operation = "getExecutionValue",
	  .flags = ROUTE_SLOW,
	  .summary = "Whole value of an execution as JSON, also one that is too large for its "
		     "result" },
	{ HTTP_GET, "/v1/executions/{id}/files", get_files, .operation = "listExecutionFiles",
	  .flags = ROUTE_SLOW, .summary = "Files that the program wrote: a list, or all as a tar",
	  .response_schema = "Files" },
	{ HTTP_GET, "/v1/executions/{id}/files/{path...}", get_file,
	  .operation = "getExecutionFile", .flags = ROUTE_SLOW,
	  .summary = "One file that the program wrote" },
	{ 0 },
};
