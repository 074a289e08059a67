/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One analysis. The way the run ended decides first (ending.c): a limit or a refusal is the error, independent
 * of the output. Otherwise the tables of the language read the output (finding.c), the error is located in the
 * program's text (source.c) and gets its category and suggestion (advice.c).
 */
#include "run/analyse/analyse.h"

#include "run/analyse/ending.h"
#include "run/analyse/family.h"
#include "spec/notice.h"
#include "spec/utf8-json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct analysis_work {
	struct ending_view view;
	struct ending_advice ending;
	const struct family *family;
	const char *usual; /* the family's name for the program's file */
	struct program_source source;
	struct finding finding;
	struct advice_output advice;
	char name[40];		 /* of the program, if the language alone does not give it */
	char path[FINDING_PATH]; /* of finding.file; "" without a line */
};

static void work_done(struct analysis_work *w)
{
	buf_done(&w->ending.text);
	buf_done(&w->advice.text);
	finding_done(&w->finding);
	source_done(&w->source);
}

const struct family *family_find(const char *language, const char **ret_source)
{
	for (const struct family *f = families; f->languages[0]; f++)
		for (size_t i = 0; i < FAMILY_LANGUAGES_MAX && f->languages[i]; i++)
			if (strcmp(f->languages[i], language) == 0) {
				if (ret_source)
					*ret_source = f->sources[i];
				return f;
			}
	return NULL;
}

/* The program's file, or that of the failed stage. */
static struct span place_program(struct analysis_work *w)
{
	const char *name = w->usual, *dot = strrchr(name, '.');
	const char *entry = json_string_value(json_object_get(w->source.request, "entry"));

	if (w->source.stage == 0 && entry)
		return span_of(entry);
	if (w->source.stage == 0 || strncmp(name, "main", 4) != 0)
		return span_of(name);
	(void)snprintf(w->name, sizeof(w->name), "main-%zu%.8s", w->source.stage, dot);
	return span_of(w->name);
}

/* From columns on a screen to bytes of the line. */
static int64_t column_of(struct span line, int64_t column, int tabs)
{
	int64_t width = 0;

	for (size_t i = 0; i < line.len; i++) {
		if (width + 1 >= column)
			return (int64_t)i + 1;
		if (line.data[i] == '\t')
			width += tabs - width % tabs;
		else if ((line.data[i] & 0xc0) != 0x80)
			width++;
	}
	return (int64_t)line.len + 1;
}

/* The column in the file, of a line that was shown without its indentation or with wide tabs. */
static int64_t true_column(struct analysis_work *w, const char *path, int64_t line, int64_t column)
{
	struct span text;
	int64_t indent = 0;

	if (column == 0 || (!w->family->dedents && w->family->tabs == 0))
		return column;
	text = source_line(source_text(&w->source, path), line);
	if (!text.data)
		return 0;
	if (!w->family->dedents)
		return column_of(text, column, w->family->tabs);
	while (indent < (int64_t)text.len && isblank((unsigned char)text.data[indent]))
		indent++;
	return column + indent;
}

static int read_words(struct analysis_work *w)
{
	const struct find_row *rows = w->view.compiling ? w->family->compile : w->family->run;
	struct span words = { w->view.words, w->view.words_len };
	struct finding *f = &w->finding;
	int r = rows ? finding_read(f, rows, words) : 0;

	if (r < 0)
		return r;
	finding_locate(f, w->family->inner_last);
	source_refine(&w->source, f, w->family->refine);
	if (f->line <= 0)
		return 0;
	if (f->file.len == 0)
		f->file = place_program(w);
	(void)path_normal(f->file, w->path);
	f->column = true_column(w, w->path, f->line, f->column);
	return 0;
}

static json_t *text_or_null(struct span text)
{
	return text.len > 0 ? utf8_to_json(text.data, text.len, NULL) : json_null();
}

static json_t *positive_or_null(int64_t n)
{
	return n > 0 ? json_integer(n) : json_null();
}

/* The innermost first, independent of the printed order. */
static json_t *frames_to_json(struct analysis_work *w)
{
	const struct finding *f = &w->finding;
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_frames; i++) {
		const struct frame *frame =
			&f->frames[w->family->inner_last ? f->n_frames - 1 - i : i];
		char path[FINDING_PATH] = "";

		(void)path_normal(frame->file, path);
		if (json_array_append_new(
			    list, json_pack("{s:o, s:o, s:o, s:o}", "function",
					    text_or_null(text_trim(frame->function)), "file",
					    text_or_null(span_of(path)), "line",
					    positive_or_null(frame->line), "column",
					    positive_or_null(true_column(w, path, frame->line,
									 frame->column)))) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static struct span last_line(struct span text)
{
	struct span last = { 0 };

	if (text.len > TEXT_LINE_MAX)
		text = (struct span){ text.data + text.len - TEXT_LINE_MAX, TEXT_LINE_MAX };
	while (text.len > 0) {
		struct span line = text_trim(text_line(&text));

		if (line.len > 0)
			last = line;
	}
	return last;
}

static struct span message_of(const struct analysis_work *w)
{
	struct span last = last_line((struct span){ w->view.words, w->view.words_len });

	if (w->ending.decides)
		return span_of(w->view.detail);
	if (w->finding.found && w->finding.message.len > 0)
		return (struct span){ w->finding.message.data, w->finding.message.len };
	/* The last line explains an exit; a type alone needs none. */
	if (w->finding.found || last.len == 0)
		return w->finding.found ? (struct span){ 0 } : span_of(w->view.detail);
	return last;
}

static struct span exception_of(const struct analysis_work *w)
{
	if (w->finding.exception.len > 0)
		return w->finding.exception;
	return w->ending.decides ? (struct span){ 0 } : span_of(w->ending.name);
}

/* An error without a row of its own. */
static int advise_plainly(struct analysis_work *w)
{
	const struct finding *f = &w->finding;
	struct span last = message_of(w);
	struct buf *out = &w->advice.text;
	int r;

	bool typed = f->found && f->exception.len > 0;

	w->advice.category = f->found && !f->weak && !w->view.compiling ? "exception"
									: w->ending.category;
	if (!typed && (w->view.signal > 0 || w->view.words_len == 0))
		return buf_append(out, w->ending.text.data, w->ending.text.len);
	if (typed) {
		/* "Handle `Stop` (no configuration) on line 4, or remove its reason." */
		struct span message = { f->message.data, f->message.len };

		message = text_line(&message);
		r = buf_printf(out, "Handle `%.*s`", (int)MIN(f->exception.len, (size_t)80),
			       f->exception.data);
		if (r >= 0 && message.len > 0)
			r = buf_printf(out, " (%.*s)", (int)MIN(message.len, (size_t)120),
				       message.data);
		if (r >= 0 && f->line > 0)
			r = buf_printf(out, " on line %lld", (long long)f->line);
		return r < 0 ? r : buf_puts(out, ", or remove its reason.");
	}
	if (f->line > 0)
		r = buf_printf(out, "Look at line %lld: %.*s", (long long)f->line,
			       (int)MIN(last.len, (size_t)160), last.data);
	else
		r = buf_printf(out, "It ended with code %lld after saying: %.*s",
			       (long long)w->view.exit_code, (int)MIN(last.len, (size_t)160),
			       last.data);
	return r;
}

static int advise(struct analysis_work *w)
{
	struct advice_input in = { .family = w->family,
				   .finding = &w->finding,
				   .source = &w->source };
	int r;

	if (w->ending.decides) {
		w->advice.category = w->ending.category;
		buf_init(&w->advice.text, w->ending.text.max);
		return buf_append(&w->advice.text, w->ending.text.data, w->ending.text.len);
	}
	r = advice_find(&in, &w->advice);
	return r < 0 || w->advice.category ? r : advise_plainly(w);
}

static json_t *to_json(struct analysis_work *w)
{
	json_t *excerpt = source_excerpt(&w->source, w->path, w->finding.line, w->finding.column);
	bool own = !w->ending.decides && !w->view.compiling && w->finding.found;
	const char *type = own && w->family->error_type ? w->family->error_type
							: w->ending.error_type;

	return json_pack("{s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "is_error", 1,
			 "error_type", type, "exception", text_or_null(exception_of(w)), "message",
			 text_or_null(message_of(w)), "file", text_or_null(span_of(w->path)),
			 "line", positive_or_null(w->finding.line), "frames", frames_to_json(w),
			 "excerpt", excerpt ? excerpt : json_null(), "category", w->advice.category,
			 "suggestion",
			 text_or_null((struct span){ w->advice.text.data, w->advice.text.len }));
}

/* The first test that failed, unless all were left out: it is what the whole failed by. NULL: there is none. */
static const json_t *failed_test(const json_t *result, size_t *ret_number)
{
	const json_t *test;
	size_t i;

	json_array_foreach(json_object_get(result, "tests"), i, test)
	{
		const char *verdict = json_string_value(json_object_get(test, "verdict"));

		if (!verdict || strcmp(verdict, "passed") == 0 || strcmp(verdict, "skipped") == 0)
			continue;
		*ret_number = i + 1;
		return test;
	}
	return NULL;
}

/* Of a test whose program ended well: what was printed decided, or the program that judges. NULL: no memory. */
static json_t *judged_analysis(const json_t *test, size_t number)
{
	const char *verdict = json_string_value(json_object_get(test, "verdict"));
	bool broken = strcmp(verdict, "checker_error") == 0;
	const char *suggestion =
		broken ? "The program that judges failed, not the one that it judges: run it by "
			 "itself with the files of that test."
		       : "Compare what the program prints with what is expected there; its input "
			 "is that of the test.";
	_cleanup_buf_ struct buf message = { .max = TEXT_LINE_MAX };
	size_t start;

	if (buf_printf(&message, "test %zu: ", number) < 0)
		return NULL;
	start = message.len;
	/* A long one is cut. A result of an older version may have no words about the test. */
	(void)!test_text(test, &message);
	if (message.len == start && buf_append(&message, verdict, strlen(verdict)) < 0)
		return NULL;
	return json_pack("{s:b, s:s, s:n, s:o, s:n, s:n, s:[], s:n, s:s, s:s}", "is_error", 1,
			 "error_type", verdict, "exception", "message",
			 text_or_null((struct span){ message.data, message.len }), "file", "line",
			 "frames", "excerpt", "category", verdict, "suggestion", suggestion);
}

json_t *analysis_make(const json_t *request, const json_t *result)
{
	_cleanup_(work_done) struct analysis_work w = { .source = { .request = request } };
	size_t number = 0;
	const json_t *test = failed_test(result, &number);
	const char *verdict = json_string_value(json_object_get(test, "verdict")), *language;
	int r;

	if (verdict &&
	    (strcmp(verdict, "wrong_answer") == 0 || strcmp(verdict, "presentation_error") == 0 ||
	     strcmp(verdict, "checker_error") == 0))
		return judged_analysis(test, number);
	ending_read(request, result, &w.view);
	if (test && !w.view.compiling) {
		ending_read(request, test, &w.view);
		w.view.result = result;
	}
	if (w.view.success)
		return json_pack("{s:b, s:s, s:n, s:n, s:n, s:n, s:[], s:n, s:n, s:n}", "is_error",
				 0, "error_type", "none", "exception", "message", "file", "line",
				 "frames", "excerpt", "category", "suggestion");
	source_enter_stage(&w.source, w.view.last);
	language = json_string_value(json_object_get(w.view.result, "language"));
	if (!language)
		language = json_string_value(json_object_get(request, "language"));
	if (!language && json_object_get(request, "stages"))
		language = "bash";
	w.family = family_find(language ? language : "", &w.usual);
	r = ending_judge(&w.view, &w.ending);
	/* If Atoll killed the program, its output does not explain the end. */
	if (r >= 0 && w.family && w.view.words &&
	    (!w.ending.decides || (w.view.signal == 0 && w.view.exit_code > 0 &&
				   w.view.exit_code != 124 && w.view.exit_code != 137)))
		r = read_words(&w);
	if (r >= 0)
		r = advise(&w);
	return r < 0 ? NULL : to_json(&w);
}

/* -ENOMEM is the only failure; the caller calls work_done(). */
static int read_error(struct analysis_work *w, const struct error_input *in)
{
	*w = (struct analysis_work){
		.source = { .request = in->request },
		.view = { .words = in->words ? in->words : "",
			  .words_len = in->words_len,
			  .detail = in->detail ? in->detail : "" },
	};
	w->family = family_find(in->language, &w->usual);
	if (in->stage) {
		source_enter_stage(&w->source, in->stage);
		w->view.compiling = ending_is_compiler(in->stage);
	}
	if (in->signal > 0)
		ending_signal_name(in->signal, w->ending.name, sizeof(w->ending.name));
	return w->family ? read_words(w) : 0;
}

json_t *analysis_error(const struct error_input *in, char **suggestion)
{
	_cleanup_(work_done) struct analysis_work w = { 0 };
	struct span type, message;
	struct advice_input about;

	if (read_error(&w, in) < 0)
		return NULL;
	about = (struct advice_input){ w.family, &w.finding, &w.source };
	type = exception_of(&w);
	message = message_of(&w);
	/* Words that may be the program's own, without a type or a place, are no recognised error. */
	if (type.len == 0 && (!w.finding.found || (w.finding.weak && !w.path[0])))
		return NULL;
	if (type.len == 0)
		type = span_of(w.view.compiling ? "compile_error" : "execution_failure");
	if (suggestion && advice_find(&about, &w.advice) == 0 && w.advice.category &&
	    w.advice.text.len > 0)
		*suggestion = strdup(w.advice.text.data);
	return json_pack("{s:o, s:o, s:o, s:o}", "type", utf8_to_json(type.data, type.len, NULL),
			 "message", utf8_to_json(message.data, message.len, NULL), "file",
			 text_or_null(span_of(w.path)), "line",
			 positive_or_null(w.path[0] ? w.finding.line : 0));
}

/* Python and Node read all of a program before they begin; an error of their parser that comes later has a line of the caller's below it. */
static bool is_no_program(const struct analysis_work *w)
{
	static const char *const types[] = { "SyntaxError", "IndentationError", "TabError" };
	const struct finding *f = &w->finding;
	bool refused = false;
	static const char work[] = ANALYSE_WORK "/"; /* of modules: file:///sandbox/main.mjs */
	char path[FINDING_PATH];

	if (w->family->refused == REFUSED_NEVER)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		refused = refused || span_is(f->exception, types[i]);
	for (size_t i = 0; i < f->n_frames; i++)
		if (f->frames[i].file.len > 0 &&
		    memmem(f->frames[i].file.data, f->frames[i].file.len, work, strlen(work)) &&
		    (w->family->refused == REFUSED_ANY || f->frames[i].function.len > 0))
			return false;
	return refused && f->line > 0 && path_normal(f->file, path);
}

enum words_meaning analysis_meaning(const struct error_input *in)
{
	_cleanup_(work_done) struct analysis_work w = { 0 };
	const struct advice_input about = { .family = family_find(in->language, NULL),
					    .finding = &w.finding,
					    .source = &w.source };

	if (read_error(&w, in) < 0 || !w.finding.found)
		return WORDS_PLAIN;
	if (is_no_program(&w))
		return WORDS_NO_PROGRAM;
	return advice_is_of_memory(&about) ? WORDS_NO_MEMORY : WORDS_PLAIN;
}
