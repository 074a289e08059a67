/* SPDX-License-Identifier: Apache-2.0 */
/*
 * R. Errors name a call and no line, so the line is the one of the program that holds the call (R prints
 * it in its own spacing), or the function it was called from. The last error counts: those inside try()
 * are printed as well.
 */
#include "run/analyse/family.h"

enum { BODY = FIND_IN_A };

static const struct find_row run[] = {
	{ "Error in %n : %m", FIND_ERROR, 0, BODY, FIND_OPEN, "Error" },
	{ "Error in %n : ", FIND_ERROR, 0, BODY, FIND_OPEN, "Error" },
	{ "Error: %m", FIND_ERROR, 0, BODY, FIND_OPEN, "Error" },
	{ "Calls: %m", FIND_CALLS, BODY, 0, 0, NULL },
	{ "In addition: %s", FIND_NAME, BODY, 0, 0, NULL },
	{ "  cannot open file '%s': No such file or directory", FIND_MORE, BODY, 0, FIND_WHOLE,
	  NULL },
	{ "Execution halted", FIND_NAME, BODY, 0, 0, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ NULL, "object '%1' not found", "name", "Give `{1}` a value before line {line} uses it.",
	  "`{1}` is not defined: did you mean `{near}`?" },
	{ NULL, "could not find function \"%1\"", "name",
	  "There is no function `{1}`: load its package with `library()`, or define it.",
	  "There is no function `{1}`: did you mean `{near}`?" },
	{ NULL, "there is no package called ‘%1’", "import",
	  "Package `{1}` is not installed here: {package}.", NULL },
	{ NULL, "subscript out of bounds", "index",
	  "Line {line} asks for an element that is not there: compare with `length()` or `dim()`.",
	  NULL },
	{ NULL, "non-numeric argument to %1", "type",
	  "A value on line {line} is text: convert it with `as.numeric()` before the {1}.", NULL },
	{ NULL, "cannot open the connection\ncannot open file '%1': No such file or directory",
	  "io", "There is no `{1}` in the sandbox: {send}.", NULL },
	{ NULL, "cannot open the connection%s", "io",
	  "The file or address cannot be opened: files have to be sent along, and there is no "
	  "network.",
	  NULL },
	{ NULL, "unexpected symbol in %s", "syntax",
	  "An operator or a comma is missing on line {line}, between two names.", NULL },
	{ NULL, "unexpected end of input%s", "syntax",
	  "A bracket that was opened is never closed: count { and }.", NULL },
	{ NULL, "unexpected %1 in%s", "syntax",
	  "{1} does not fit on line {line}: something is missing before it, or it is one too many.",
	  NULL },
	{ NULL, "argument \"%1\" is missing, with no default", "type",
	  "Give the function on line {line} its argument `{1}`.", NULL },
	{ NULL, "unused argument%s (%1)", "type",
	  "The function on line {line} has no parameter for {1}.", NULL },
	{ NULL, "C stack usage %s", "recursion",
	  "The recursion does not end: check the case that should stop it.", NULL },
	{ NULL, "evaluation nested too deeply%s", "recursion",
	  "The recursion does not end: check the case that should stop it.", NULL },
	{ NULL, "missing value where TRUE/FALSE needed", "value",
	  "The condition on line {line} is NA: test with `is.na()` first.", NULL },
	{ NULL, "argument is of length zero", "value",
	  "The condition on line {line} is empty: test its length first.", NULL },
	{ NULL, "'arg' should be one of %1", "value", "Use one of {1}.", NULL },
	{ NULL, "%1 is not TRUE", "assertion", "`{1}` does not hold: print the values it compares.",
	  NULL },
	{ NULL, "non-conformable arguments", "value",
	  "The sizes on line {line} do not fit: compare `dim()` of both, columns of the first must "
	  "be rows of the second.",
	  NULL },
	{ NULL, "cannot allocate vector of size %1", "memory",
	  "A vector of {1} does not fit: work in parts, or raise `--memory` (now {limit}).", NULL },
	{ NULL, "invalid argument to unary operator", "type",
	  "A value on line {line} is text where a number is wanted.", NULL },
	{ 0 },
};

/* The last line of the quoted text after "in". */
static struct span snippet(const struct finding *f)
{
	struct span text = { f->message.data, f->message.len }, line = { 0 };
	struct slots s;

	if (text_match("unexpected %s in \"%1\"", text, &s) ||
	    text_match("unexpected %s in:\n\"%1\"", text, &s))
		for (text = slot(&s, '1'); text.len > 0;)
			line = text_line(&text);
	else if (text_match("%1 is not TRUE", text, &s))
		line = slot(&s, '1');
	return line;
}

static int64_t count_lines(struct span text)
{
	int64_t n = 0;

	for (; text.len > 0; n++)
		(void)text_line(&text);
	return n;
}

/* Places from the best to the least certain. */
static void refine_r(struct finding *f, struct program_source *src)
{
	struct slots s;

	if (!f->found)
		return;
	if (text_match("Error in %n : %s", f->line_text, &s))
		source_locate(src, f, slot(&s, 'n'), SEARCH_ONLY);
	if (f->line == 0)
		source_locate(src, f, snippet(f), SEARCH_ONLY);
	if (f->line == 0 && text_match("unexpected end of input%s", f->first, &s))
		f->line = count_lines(source_code(src));
	for (size_t i = 0; f->line == 0 && i < f->n_frames; i++)
		source_locate(src, f, f->frames[i].function, SEARCH_LAST);
}

const struct family family_r = {
	.languages = { "r" },
	.run = run,
	.advice = advice,
	.registry = "CRAN",
	.debian = "r-cran-{1}",
	.words = "mean median sum length print cat paste paste0 sapply lapply data.frame matrix "
		 "seq rep sort order table summary nrow ncol apply round sqrt max min which",
	.inner_last = true,
	.refine = refine_r,
};
