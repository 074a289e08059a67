/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: the place where a zygote is forked if its interpreter does not call fork(), or not in time. The
 * variable ATOLL_ENTRY names the place:
 *
 *   main           where main() would begin. All that exec and the dynamic linker do is done; words and variables are
 *                  then the request's, so nothing of the zygote shows
 *   moved          the same, with a heap at a place of its own: Lua makes its random numbers out of the heap's place
 *   open:PATH      where the interpreter opens PATH, its script. The interpreter has read its words by then: if the
 *                  request has other words, the agent executes the interpreter in the sandbox as the cold path does
 *   instead:PATH   not here: the runner forks, but the interpreter loads the runner only once the script is open.
 *                  Opening PATH gives another file, and the runner puts the request's in its place
 */
#include "agent/agent.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <wchar.h>

#define EXPORT __attribute__((visibility("default")))

#define ENTRY_VARIABLE "ATOLL_ENTRY"
#define NOTE_VARIABLE  "ATOLL_NOTE"
#define PAGES_VARIABLE "ATOLL_PAGES"
#define TEXT_VARIABLE  "ATOLL_TEXT"

typedef int main_fn(int argc, char **argv, char **env);

enum entry_kind { ENTRY_NONE, ENTRY_MAIN, ENTRY_MOVED, ENTRY_OPEN, ENTRY_INSTEAD };

/* Pages of the gap: up to 1 GiB. Blocks that malloc() takes from the heap are smaller than 128 KiB. */
enum { GAP_BITS = 18, OLD_HEAP_BLOCK = 64 << 10 };

static struct {
	enum entry_kind kind;
	const char *path;
	main_fn *program;
	int argc;
	char **argv;
	void *step; /* never used */
} entry;

struct entry_words {
	int argc;
	char **argv;
};

static const struct {
	const char *word;
	enum entry_kind kind;
} kinds[] = { { "main", ENTRY_MAIN },
	      { "moved", ENTRY_MOVED },
	      { "open:", ENTRY_OPEN },
	      { "instead:", ENTRY_INSTEAD } };

/* Waits for the request. Its words stay where the agent has put them. */
static int take_words(struct entry_words *ret)
{
	char *p, **argv, byte;
	int argc = 0;

	if (agent_read(&byte, 1) != 1 || agent_read(&byte, 1) != 1)
		return -EIO;
	p = (char *)(uintptr_t)agent.text;
	for (; *p >= '0' && *p <= '9'; p++)
		argc = argc * 10 + (*p - '0');
	argv = calloc((size_t)argc + 1, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		p += strlen(p) + 1;
		argv[i] = p;
	}
	agent.text = NULL;
	*ret = (struct entry_words){ argc, argv };
	return 0;
}

/* Best effort: if a step fails, the heap stays where it is. */
static void move_heap(void)
{
	const uintptr_t page = 4096;
	uintptr_t begin, end;
	uint32_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return;
	begin = (uintptr_t)sbrk((intptr_t)((bits & ((1U << GAP_BITS) - 1)) * page));
	if (begin == UINTPTR_MAX)
		return;
	begin = (begin + page - 1) & ~(page - 1);
	end = (uintptr_t)sbrk(0) & ~(page - 1);
	if (end > begin)
		(void)munmap((void *)begin, end - begin);
	/* All free blocks below the gap are taken first, in ever smaller sizes; none of them is used. */
	for (size_t size = OLD_HEAP_BLOCK; size >= 16; size /= 2) {
		void *block = malloc(size);

		while (block && (uintptr_t)block < begin)
			block = malloc(size);
		free(block);
	}
	entry.step = malloc((size_t)(bits >> GAP_BITS) % OLD_HEAP_BLOCK);
}

static struct entry_words enter_main(void)
{
	struct entry_words words;

	/* This is the agent's fork(): it returns in children only. */
	if (fork() != 0)
		_exit(1);
	if (entry.kind == ENTRY_MOVED)
		move_heap();
	if (take_words(&words) < 0)
		_exit(1);
	return words;
}

static bool has_same_words(const struct entry_words *words)
{
	if (words->argc != entry.argc)
		return false;
	for (int i = 0; i < words->argc; i++)
		if (strcmp(words->argv[i], entry.argv[i]) != 0)
			return false;
	return true;
}

/* The file to open under this name. */
static const char *entry_open(const char *path)
{
	struct entry_words words;

	if (entry.kind < ENTRY_OPEN || agent.role != AGENT_IS_ZYGOTE || !path ||
	    strcmp(path, entry.path) != 0)
		return path;
	/* Any plain file will do: no program gets its descriptor. */
	if (entry.kind == ENTRY_INSTEAD)
		return "/proc/self/exe";
	words = enter_main();
	if (!has_same_words(&words)) {
		(void)execve(words.argv[0], words.argv, environ);
		_exit(127);
	}
	return path;
}

/*
 * Loads the locale that programs will set. libc keeps the tables and converters that it has loaded, so programs
 * find them there. Until main() sets a locale, it is "C" as ever.
 */
static void load_locale(void)
{
	wchar_t wide;
	mbstate_t state = { 0 };

	if (!setlocale(LC_CTYPE, ""))
		return;
	(void)mbrtowc(&wide, "\xc3\xa9", 2, &state);
	(void)setlocale(LC_CTYPE, "C");
}

static int entry_main(int argc, char **argv, char **env)
{
	struct entry_words words;

	(void)argc;
	(void)argv;
	(void)env;
	/*
	 * Not for ENTRY_MOVED: loading a locale leaves pieces in the old heap, and the program's heap must
	 * begin at a place of its own.
	 */
	if (entry.kind == ENTRY_MAIN)
		load_locale();
	words = enter_main();
	return entry.program(words.argc, words.argv, environ);
}

static void read_variables(void)
{
	const char *text = getenv(ENTRY_VARIABLE);

	for (size_t i = 0; text && i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i].word);

		if (strncmp(text, kinds[i].word, n) != 0)
			continue;
		entry.kind = kinds[i].kind;
		entry.path = strdup(text + n);
		if (!entry.path)
			_exit(1);
	}
	if (text)
		(void)unsetenv(ENTRY_VARIABLE);
	agent.noted = getenv(NOTE_VARIABLE) != NULL;
	(void)unsetenv(NOTE_VARIABLE);
	agent.probing = getenv(PAGES_VARIABLE) != NULL;
	(void)unsetenv(PAGES_VARIABLE);
	text = getenv(TEXT_VARIABLE);
	agent.text_path = text ? strdup(text) : NULL;
	(void)unsetenv(TEXT_VARIABLE);
}

/* Keeps copies of the words: PHP overwrites the ones it was given. */
static void keep_words(int argc, char **argv)
{
	entry.argv = calloc((size_t)argc + 1, sizeof(*entry.argv));
	for (; entry.argv && entry.argc < argc; entry.argc++) {
		entry.argv[entry.argc] = strdup(argv[entry.argc]);
		if (!entry.argv[entry.argc])
			break;
	}
	if (entry.argc != argc)
		_exit(1);
}

#define REAL(name, type) ((type *)(uintptr_t)dlsym(RTLD_NEXT, name))

typedef int start_fn(main_fn *program, int argc, char **argv, ...);
typedef int open_fn(const char *path, int flags, ...);
typedef FILE *fopen_fn(const char *path, const char *mode);

/* The area from start to the end of the list's last string: exec has put the strings side by side. */
static struct agent_area area_of(char *start, char **list)
{
	char *end = start;

	for (; *list; list++)
		end = *list >= end ? *list + strlen(*list) + 1 : end;
	return (struct agent_area){ end > start ? start : NULL, (size_t)(end - start) };
}

/*
 * The program's first instructions call this function, after the agent's constructor has run. Four more
 * pointers are handed on.
 */
static int start_instead(main_fn *program, int argc, char **argv, ...)
{
	start_fn *real = REAL("__libc_start_main", start_fn);
	void *more[4];
	va_list ap;

	if (!real)
		_exit(1);
	va_start(ap, argv);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		more[i] = va_arg(ap, void *);
	va_end(ap);
	agent.words = area_of(argv[0], argv);
	/* Variables that the agent's constructor has removed lie in front. */
	if (agent.words.start)
		agent.variables = area_of(agent.words.start + agent.words.size, argv + argc + 1);
	if (agent.role == AGENT_IS_ZYGOTE)
		read_variables();
	if (entry.kind == ENTRY_OPEN)
		keep_words(argc, argv);
	entry.program = program;
	if (entry.kind == ENTRY_MAIN || entry.kind == ENTRY_MOVED)
		program = entry_main;
	return real(program, argc, argv, more[0], more[1], more[2], more[3]);
}

static int open_instead(const char *path, int flags, ...)
{
	static open_fn *real;
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!real)
		real = REAL("open", open_fn);
	return real(entry_open(path), flags, mode);
}

static FILE *fopen_instead(const char *path, const char *mode)
{
	static fopen_fn *real;

	if (!real)
		real = REAL("fopen", fopen_fn);
	return real(entry_open(path), mode);
}

/* Where every offset has 64 bits, open64() and fopen64() are the same as open() and fopen(). */
EXPORT start_fn __libc_start_main __attribute__((alias("start_instead")));
EXPORT open_fn open __attribute__((alias("open_instead")));
EXPORT open_fn open64 __attribute__((alias("open_instead")));
EXPORT fopen_fn fopen __attribute__((alias("fopen_instead")));
EXPORT fopen_fn fopen64 __attribute__((alias("fopen_instead")));
