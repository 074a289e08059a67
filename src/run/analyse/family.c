/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families by the names of their languages, system messages that all languages share, and the uncaught
 * error that a result carries (doc/result.md) without the rest of the analysis.
 */
#include "run/analyse/family.h"

#include "base/utf8.h"

#include <string.h>

static const struct family *const families[] = {
	&family_python, &family_node, &family_shell, &family_ruby, &family_php, &family_perl,
	&family_lua,	&family_r,    &family_c,     &family_rust, &family_go,	&family_java,
};

const struct advice advice_common[] = {
	{ NULL, "%sNo space left on device%s", "disk",
	  "The disk limit is reached: write less, or raise `--disk`.", NULL },
	{ NULL, "%sToo many open files%s", "io",
	  "Close files that are done with, or raise `--open-files`.", NULL },
	{ NULL, "%sName or service not known%s", "network", ADVICE_NO_NETWORK, NULL },
	{ NULL, "%sTemporary failure in name resolution%s", "network", ADVICE_NO_NETWORK, NULL },
	/* curl and git; wget; Go */
	{ NULL, "%sCould not resolve host%s", "network", ADVICE_NO_NETWORK, NULL },
	{ NULL, "%sunable to resolve host address%s", "network", ADVICE_NO_NETWORK, NULL },
	{ NULL, "%sdial tcp: lookup %s", "network", ADVICE_NO_NETWORK, NULL },
	{ NULL, "%sNetwork is unreachable%s", "network", ADVICE_NO_NETWORK, NULL },
	{ NULL, "%sConnection refused%s", "network", ADVICE_NO_LISTENER, NULL },
	{ NULL, "%1: No such file or directory", "io", "There is no `{1}` in the sandbox: {send}.",
	  NULL },
	{ NULL, "%sNo such file or directory%s", "io",
	  "A file is not in the sandbox: send it along with `--file NAME=PATH` (`files` in a "
	  "request); the working directory is /sandbox.",
	  NULL },
	{ NULL, "%sRead-only file system%s", "permission", "Only /sandbox and /tmp can be written.",
	  NULL },
	{ NULL, "%sPermission denied%s", "permission",
	  "That is not allowed in the sandbox: only /sandbox and /tmp can be written, and there is "
	  "no network.",
	  NULL },
	{ NULL, "%sOperation not permitted%s", "permission",
	  "That system call is not allowed in the sandbox: leave it out.", NULL },
	{ NULL, "%sCannot allocate memory%s", "memory",
	  "Ask for less memory, or raise `--memory` (now {limit}).", NULL },
	{ NULL, "%sResource temporarily unavailable%s", "process",
	  "No more processes or threads may be started: start fewer, or raise `--pids`.", NULL },
	{ 0 },
};

const struct family *family_find(const char *language)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		for (const char *const *name = families[i]->languages; *name; name++)
			if (strcmp(*name, language) == 0)
				return families[i];
	return NULL;
}
