/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a key stands in a YAML or JSON text. The tree has no positions, so after a refusal the text is read again:
 * each key's path is written as readers write `field`, until it is the one that is looked for.
 */
#include "spec/yaml.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* An open mapping or list. */
struct place_frame {
	size_t path_len; /* of its own path */
	size_t index;	 /* list: of the next element */
	bool is_list, has_key;
};

struct place_walk {
	const char *field;
	char path[sizeof(((struct error *)NULL)->field)];
	struct place_frame stack[YAML_DEPTH_MAX];
	size_t depth;
};

/* The path of the frame's next key or element. Like `field`, it is cut where its array ends. */
static void name_next(struct place_walk *w, const struct place_frame *top, const char *key)
{
	char *at = w->path + top->path_len;
	size_t room = sizeof(w->path) - top->path_len;

	if (top->is_list)
		(void)snprintf(at, room, "[%zu]", top->index);
	else
		(void)snprintf(at, room, "%s%s", top->path_len ? "." : "", key);
}

/* True: the event is the key that is looked for. */
static bool is_key_found(struct place_walk *w, const yaml_event_t *event)
{
	struct place_frame *top = w->depth > 0 ? &w->stack[w->depth - 1] : NULL;
	bool opens = event->type == YAML_MAPPING_START_EVENT ||
		     event->type == YAML_SEQUENCE_START_EVENT;
	bool is_value = opens || event->type == YAML_SCALAR_EVENT;

	if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT) {
		w->depth--;
		return false;
	}
	if (top && is_value && (top->is_list || !top->has_key)) {
		name_next(w, top, opens ? "" : (const char *)event->data.scalar.value);
		top->index++;
		top->has_key = true;
		if (strcmp(w->path, w->field) == 0)
			return true;
		if (!top->is_list)
			return false;
	}
	if (top && is_value)
		top->has_key = false;
	if (opens)
		w->stack[w->depth++] = (struct place_frame){
			.path_len = strlen(w->path),
			.is_list = event->type == YAML_SEQUENCE_START_EVENT,
		};
	return false;
}

int yaml_place(const struct document *doc, int r, struct error *err)
{
	struct place_walk w = { .field = err ? err->field : "" };
	yaml_parser_t parser;
	yaml_event_t event;
	bool found = false, end = !*w.field;

	if (!yaml_parser_initialize(&parser))
		return r;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)doc->text, doc->len);
	while (!end && !found && w.depth < YAML_DEPTH_MAX && yaml_parser_parse(&parser, &event)) {
		found = is_key_found(&w, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		if (found)
			(void)error_wrap(err, r, "%.200s:%zu:%zu", doc->name,
					 event.start_mark.line + 1, event.start_mark.column + 1);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return found ? r : error_wrap(err, r, "%.200s", doc->name);
}
