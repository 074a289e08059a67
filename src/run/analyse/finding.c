/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See finding.h. Each line goes to the first row that matches it in the current state. Output is untrusted: it
 * may imitate, repeat or cut any form. The finding is then wrong or empty, but bounded: lines, frames and
 * message have limits here, the cost of a line has one in match-text.c.
 */
#include "run/analyse/finding.h"

#include <assert.h>
#include <string.h>

bool path_normal(struct span path, char ret[FINDING_PATH])
{
	static const char prefix[] = ANALYSE_WORK "/";
	bool relative = path.len > 0 && path.data[0] != '/';
	size_t n = 0;

	if (relative && span_starts(path, "./"))
		path = (struct span){ path.data + 2, path.len - 2 };
	path.len = MIN(path.len, (size_t)FINDING_PATH - sizeof(prefix));
	for (size_t i = 0; i < path.len && relative; i++)
		if (strchr(":<>()[]", path.data[i]))
			relative = false; /* node:fs, <string>, (eval) */
	if (relative && path.len > 0) {
		n = sizeof(prefix) - 1;
		memcpy(ret, prefix, n);
	}
	if (path.len > 0)
		memcpy(ret + n, path.data, path.len);
	ret[n + path.len] = '\0';
	return strncmp(ret, prefix, sizeof(prefix) - 1) == 0;
}

/* Frames of the Java library name a module ("java.base/") and no directory. */
static bool frame_is_own(const struct frame *frame)
{
	char path[FINDING_PATH];
	bool relative = frame->file.len > 0 && frame->file.data[0] != '/';

	if (relative && frame->function.len > 0 &&
	    memchr(frame->function.data, '/', frame->function.len))
		return false;
	return frame->line > 0 && path_normal(frame->file, path);
}

static void forget(struct finding *f)
{
	f->found = f->strong = f->weak = f->open = false;
	f->message.len = 0;
	f->exception = f->first = f->file = f->name = (struct span){ 0 };
	f->line = f->column = 0;
	f->n_frames = 0;
	if (!f->chained) {
		f->cause_exception = f->cause_message = (struct span){ 0 };
		f->cause_line = 0;
	}
	f->chained = false;
}

static void take_place(struct finding *f, const struct find_row *row, const struct slots *s)
{
	if (!slot(s, 'l').data)
		return;
	f->file = slot(s, 'f');
	f->line = slot_number(s, 'l');
	f->column = slot(s, 'c').data ? slot_number(s, 'c') + (row->flags & FIND_ZERO ? 1 : 0) : 0;
}

/* A full message stays as it is. */
static int add_text(struct finding *f, struct span text)
{
	int r = f->message.len > 0 ? buf_puts(&f->message, "\n") : 0;

	if (r >= 0)
		r = buf_append(&f->message, text.data, MIN(text.len, (size_t)TEXT_LINE_MAX / 2));
	return r == -ENOBUFS ? 0 : r;
}

static void add_frame(struct finding *f, const struct frame *frame)
{
	size_t half = FINDING_FRAMES / 2;

	if (f->n_frames == FINDING_FRAMES) {
		memmove(f->frames + half, f->frames + half + 1, (half - 1) * sizeof(*frame));
		f->n_frames--;
	}
	assert(f->n_frames < FINDING_FRAMES);
	f->frames[f->n_frames++] = *frame;
}

static int take_error(struct finding *f, const struct find_row *row, const struct slots *s,
		      struct span line)
{
	if (f->found && f->strong) {
		f->open = false;
		return 0;
	}
	f->found = true;
	f->strong = row->flags & FIND_FIRST;
	f->weak = row->flags & FIND_WEAK;
	f->open = row->flags & FIND_OPEN;
	f->more = 0;
	f->exception = slot(s, 'e').data ? slot(s, 'e') : span_of(row->exception);
	f->message.len = 0;
	if (!(row->flags & FIND_KEEP)) {
		f->file = (struct span){ 0 };
		f->line = f->column = 0;
		f->n_frames = 0;
	}
	f->line_text = line;
	f->first = row->flags & FIND_WHOLE ? line : slot(s, 'm');
	take_place(f, row, s);
	return f->first.len > 0 ? add_text(f, f->first) : 0;
}

static void take_calls(struct finding *f, struct span list)
{
	while (list.len > 0) {
		const char *arrow = memmem(list.data, list.len, " -> ", 4);
		size_t n = arrow ? (size_t)(arrow - list.data) : list.len;
		struct frame frame = { .function = { list.data, n } };

		add_frame(f, &frame);
		n = arrow ? n + 4 : n;
		list = (struct span){ list.data + n, list.len - n };
	}
}

/* Python shows the line without its indentation, so columns count from the first byte. */
static void take_caret(struct finding *f, struct span line, bool to_frame)
{
	int64_t at = text_caret(line);
	size_t indent = 0;

	while (indent < f->before.len && f->before.data[indent] == ' ')
		indent++;
	if (!to_frame)
		f->column = at + 1;
	else if (f->n_frames > 0 && at >= (int64_t)indent)
		f->frames[f->n_frames - 1].column = at - (int64_t)indent + 1;
}

static int take_more(struct finding *f, const struct find_row *row, const struct slots *s,
		     struct span line)
{
	struct span text = slot(s, 'm');
	int r = 0;

	if (!f->found)
		return 0;
	f->open = row->flags & FIND_OPEN;
	if (row->flags & FIND_WHOLE)
		text = text_trim(line);
	if (text.data)
		r = add_text(f, text);
	if (!f->first.data)
		f->first = text;
	take_place(f, row, s);
	return r;
}

static int take_finding_line(struct finding *f, const struct find_row *row, const struct slots *s,
			     struct span line)
{
	struct frame frame;

	if (row->flags & FIND_RESET || row->kind == FIND_BEGIN)
		forget(f);
	if (row->to)
		f->state = row->to;
	/* One state at a time; only rows are for several. */
	assert(f->state && !(f->state & (f->state - 1)));
	switch (row->kind) {
	case FIND_SKIP:
		return 0;
	case FIND_BEGIN:
		take_place(f, row, s);
		return 0;
	case FIND_ERROR:
		return take_error(f, row, s, line);
	case FIND_MORE:
		return take_more(f, row, s, line);
	case FIND_WHERE:
		if (f->found && f->line == 0)
			take_place(f, row, s);
		break;
	case FIND_NAME:
		f->name = slot(s, 'n');
		break;
	case FIND_FRAME:
		frame = (struct frame){
			.function = slot(s, 'n').data ? slot(s, 'n') : f->name,
			.file = slot(s, 'f'),
			.line = slot_number(s, 'l'),
			.column = slot_number(s, 'c'),
		};
		f->name = (struct span){ 0 };
		add_frame(f, &frame);
		break;
	case FIND_CALLS:
		take_calls(f, slot(s, 'm'));
		break;
	case FIND_CAUSE:
		f->cause_exception = slot(s, 'e');
		f->cause_message = slot(s, 'm');
		f->cause_line = slot_number(s, 'l');
		break;
	case FIND_CAUSE_WHERE:
		frame = (struct frame){ slot(s, 'n'), slot(s, 'f'), slot_number(s, 'l'), 0 };
		if (f->cause_line == 0 && frame_is_own(&frame))
			f->cause_line = frame.line;
		break;
	case FIND_CHAIN:
		/* Chains are printed with the cause first: its place, or its innermost frame, which is the last. */
		f->cause_exception = f->exception;
		f->cause_message = f->first;
		f->cause_line = f->line;
		for (size_t i = f->n_frames; i-- > 0 && f->cause_line == 0;)
			if (frame_is_own(&f->frames[i]))
				f->cause_line = f->frames[i].line;
		f->chained = true;
		break;
	case FIND_CARET:
		break;
	}
	f->open = false;
	return 0;
}

static int read_line(struct finding *f, const struct find_row *rows, struct span line)
{
	for (const struct find_row *row = rows; row->kind; row++) {
		struct slots s;

		if (row->in && !(row->in & f->state))
			continue;
		if (row->flags & FIND_WEAK && f->found && !f->weak)
			continue;
		if (row->kind == FIND_CARET && text_caret(line) >= 0) {
			take_caret(f, line, row->flags & FIND_KEEP);
			f->state = row->to ? row->to : f->state;
			return 0;
		}
		if (row->kind != FIND_CARET && text_match(&row->match, line, &s))
			return take_finding_line(f, row, &s, line);
	}
	if (f->open && f->more++ < FINDING_MORE)
		return add_text(f, line);
	return 0;
}

int finding_read(struct finding *f, const struct find_row *rows, struct span text)
{
	struct span rest, line;
	int r;

	finding_done(f);
	buf_init(&f->text, TEXT_BYTES_MAX + 1);
	buf_init(&f->message, FINDING_MESSAGE);
	f->state = FIND_IN_START;
	r = text_clean(text, &f->text);
	rest = (struct span){ f->text.data, f->text.len };
	while (r >= 0 && rest.len > 0 && f->state != FIND_IN_END) {
		line = text_line(&rest);
		r = read_line(f, rows, line);
		f->before = line;
	}
	/* A message may have been continued by empty lines only. */
	line = text_trim((struct span){ f->message.data, f->message.len });
	if (f->message.len > 0) {
		memmove(f->message.data, line.data, line.len);
		f->message.len = line.len;
		f->message.data[line.len] = '\0';
	}
	return r;
}

void finding_done(struct finding *f)
{
	buf_done(&f->text);
	buf_done(&f->message);
	*f = (struct finding){ 0 };
}

void finding_locate(struct finding *f, bool inner_last)
{
	char path[FINDING_PATH];

	if (f->line > 0 && path_normal(f->file, path))
		return;
	for (size_t i = 0; i < f->n_frames; i++) {
		const struct frame *frame = &f->frames[inner_last ? f->n_frames - 1 - i : i];

		if (!frame_is_own(frame))
			continue;
		f->file = frame->file;
		f->line = frame->line;
		f->column = frame->column;
		return;
	}
	/* A header of the system is a place, a name like node:fs is none. */
	if (f->file.len == 0 || f->file.data[0] != '/') {
		f->file = (struct span){ 0 };
		f->line = f->column = 0;
	}
}
