/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an archive, and as an event's id. What is unpacked is within its bounds and has names that the request's reader
 * takes; an id that is read is written the same.
 */
#include <assert.h>
#include <string.h>

#include "engine/events.h"
#include "engine/unpack.h"
#include "spec/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_files(const json_t *files)
{
	const char *name;
	json_t *file;
	size_t total = 0;

	json_object_foreach((json_t *)(uintptr_t)files, name, file)
	{
		assert(request_check_path(name, strlen(name), NULL) == 0);
		total += json_string_length(file);
	}
	assert(json_object_size(files) <= UNPACK_ENTRIES_MAX && total <= UNPACK_TOTAL_MAX);
}

static void check_id(const uint8_t *data, size_t size)
{
	char text[EVENT_ID] = "", again[EVENT_ID];
	struct cursor c, d;
	bool plain;

	memcpy(text, data, MIN(size, sizeof(text) - 1));
	if (cursor_parse(text, &c, &plain) < 0 || plain)
		return;
	cursor_format(&c, again);
	assert(cursor_parse(again, &d, &plain) == 0 && d.seq == c.seq && d.over == c.over &&
	       d.bytes[0] == c.bytes[0] && d.bytes[1] == c.bytes[1] && d.controls == c.controls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *files = json_object();
	struct error err = { 0 };
	int r = unpack_archive((struct span){ (const char *)data, size }, files, &err);

	assert(r == 0 ? err.code == ERROR_NONE : err.code != ERROR_NONE && *err.text);
	check_files(files);
	json_decref(files);
	check_id(data, size);
	return 0;
}
