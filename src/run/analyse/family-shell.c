/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell scripts. Bash names file and line of its own complaints; commands complain in their own words,
 * and then the line is the one of the script that holds command and subject. The last complaint counts:
 * a script goes on after most of them.
 */
#include "run/analyse/family.h"

static const struct find_row run[] = {
	{ "%f: line %l: `%s", FIND_SKIP, 0, 0, 0, NULL },
	{ "%f: connect: %s", FIND_SKIP, 0, 0, 0, NULL },
	{ "%f: line %l: %m", FIND_ERROR, 0, 0, 0, NULL },
	{ "%f: %l: %m", FIND_ERROR, 0, 0, 0, NULL }, /* dash */
	{ "%_", FIND_SKIP, 0, 0, 0, NULL },
	{ "%m", FIND_ERROR, 0, 0, FIND_WEAK, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ NULL, "[%1: command not found", "syntax",
	  "Put a space after `[` and before `]` on line {line}.", NULL },
	{ NULL, "%1: command not found", "name",
	  "There is no command `{1}` in the sandbox: {package}.",
	  "There is no command `{1}`: did you mean `{near}`?" },
	{ NULL, "%1: not found", "name", "There is no command `{1}` in the sandbox: {package}.",
	  "There is no command `{1}`: did you mean `{near}`?" },
	{ NULL, "%1: unbound variable", "name",
	  "Variable `{1}` is not set: pass it with `--env {1}=…` or give it a default with "
	  "`${{1}:-…}`.",
	  "Variable `{1}` is not set: did you mean `{near}`?" },
	{ NULL, "syntax error near unexpected token `%1'", "syntax",
	  "`{1}` does not fit on line {line}: look for what should come before it.", NULL },
	{ NULL, "syntax error: unexpected end of file%s", "syntax",
	  "A block is not closed: look for a missing `fi`, `done`, `esac` or `}`.", NULL },
	{ NULL, "unexpected EOF while looking for matching `%1'", "syntax",
	  "The {1} opened on line {line} is never closed.", NULL },
	{ NULL, "%1: division by 0%s", "arithmetic",
	  "The divisor in `{1}` is 0: test it before dividing.", NULL },
	{ NULL, "%2: %1: integer expression expected", "value",
	  "`{1}` is not a whole number: compare texts with `=`, or check the value first.", NULL },
	{ NULL, "%2: %1: numeric argument required", "value", "`{1}` is not a number.", NULL },
	{ NULL, "%1: readonly variable", "type", "`{1}` is read-only: use another name.", NULL },
	{ NULL, "%1: bad substitution", "syntax", "`{1}` is no expansion that Bash knows.", NULL },
	{ NULL, "%2: Segmentation fault%s", "signal", "A command on line {line} crashed.", NULL },
	{ NULL, "%_%2 Segmentation fault %_%1", "signal",
	  "The command `{1}` crashed (SIGSEGV): it is not the script's fault.", NULL },
	{ NULL, "%_%2 Killed %_%1", "memory",
	  "The command `{1}` was killed: most likely it needed more than the memory limit of "
	  "{limit}.",
	  NULL },
	{ NULL, "/dev/tcp/%1/%2: %s", "network", ADVICE_NO_NETWORK, NULL },
	{ NULL, "%2: cannot access '%1': No such file or directory", "io",
	  "There is no `{1}` in the sandbox: {send}.", NULL },
	{ NULL, "%2: error: Could not open file %1: No such file or directory", "io",
	  "There is no `{1}` in the sandbox: {send}.", NULL },
	{ NULL, "%2: %1: No such file or directory", "io",
	  "There is no `{1}` in the sandbox: {send}.", NULL },
	{ NULL, "%1: Permission denied", "permission",
	  "`{1}` may not be executed or opened: make it executable with `chmod +x {1}`, or write "
	  "below /sandbox or /tmp.",
	  NULL },
	{ NULL, "%1: Read-only file system", "permission",
	  "`{1}` cannot be written: only /sandbox and /tmp can.", NULL },
	{ 0 },
};

static const struct package_hint packages[] = {
	{ "jq", "jq", NULL },
	{ "curl", "curl", NULL },
	{ "wget", "wget", NULL },
	{ "git", "git", NULL },
	{ "zip", "zip", NULL },
	{ "unzip", "unzip", NULL },
	{ "bc", "bc", NULL },
	{ "tree", "tree", NULL },
	{ "xmllint", "libxml2-utils", NULL },
	{ "sqlite3", "sqlite3", NULL },
	{ "convert", "imagemagick", NULL },
	{ "ffmpeg", "ffmpeg", NULL },
	{ "dig", "bind9-dnsutils", NULL },
	{ "ping", "iputils-ping", NULL },
	{ "nc", "netcat-openbsd", NULL },
	{ "rsync", "rsync", NULL },
	{ "vim", "vim", NULL },
	{ "make", "make", NULL },
	{ "python", "python-is-python3", NULL },
	{ "pip", "python3-pip", NULL },
	{ "npm", "npm", NULL },
	{ 0 },
};

/* `cat: data.csv: No such file or directory`: the line with both. */
static void refine_shell(struct finding *f, struct program_source *src)
{
	struct span code = source_code(src);
	static const char *const forms[] = { "%n: error: Could not open file %1: %s",
					     "%n: cannot access '%1': %s", "%n: %1: %s" };
	struct slots s;

	if (f->found &&
	    span_has((struct span){ code.data, MIN(code.len, (size_t)TEXT_BYTES_MAX) }, "\r\n")) {
		f->category = "syntax";
		f->said = "The script has Windows line ends (CR LF), which Bash takes as part of "
			  "each "
			  "command: send it with LF only.";
	}
	for (size_t i = 0; f->weak && f->line == 0 && i < ARRAY_SIZE(forms); i++)
		if (text_match(forms[i], f->first, &s))
			source_locate(src, f, slot(&s, '1'), SEARCH_ONLY);
}

const struct family family_shell = {
	.languages = { "bash" },
	.run = run,
	.advice = advice,
	.package = packages,
	.words = "echo printf cat grep sed awk sort uniq head tail cut tr wc find xargs test mkdir "
		 "rm cp mv ls touch chmod date sleep seq expr read export source git python3 node "
		 "bash tar gzip",
	.refine = refine_shell,
};
