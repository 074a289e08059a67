/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: the pages that nearly every program of a zygote touches.
 *
 * A forked program shares all pages with its zygote and copies each at its first write; pages of mapped files have
 * to be found again. A page fault costs 2 to 2.6 µs, a page that is asked for with its neighbours 0.1 (of a file) to
 * 1.6 µs. So a zygote with ATOLL_PAGES forks a probe first: a child of its own that runs a sample to its end. The
 * probe then reads /proc/self/pagemap, and every program that is made ahead asks for the same pages first.
 *
 * Between probe and programs the zygote allocates and frees nothing, so programs find the same pieces of memory free
 * as the probe did.
 */
#include "agent/agent.h"

#include "base/sys/kernel.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum {
	PAGE = 4096,
	RANGES_MAX = 1020,
	/*
	 * So many pages of a file between two wanted ones are asked for as well: that costs less than another
	 * call.
	 */
	FILE_GAP = 16,
	ENTRIES = 512, /* of the page map, read at once */
	HEAP_PIECE = 64 << 10,
};

#define PAGE_PRESENT   (1ULL << 63)
#define PAGE_OF_FILE   (1ULL << 61)
#define PAGE_EXCLUSIVE (1ULL << 56)

struct page_range {
	uintptr_t start;
	uint32_t n_pages;
	int32_t advice;
};

struct page_list {
	size_t n;
	struct page_range ranges[RANGES_MAX];
};

static struct page_list *found; /* shared by zygote and probe */
static struct page_list wanted;

static void add_page(uintptr_t page, int advice)
{
	struct page_range *last = found->n ? &found->ranges[found->n - 1] : NULL;
	uintptr_t gap = last ? (page - last->start) / PAGE - last->n_pages : 0;

	if (last && last->advice == advice && gap <= (advice == MADV_POPULATE_READ ? FILE_GAP : 0))
		last->n_pages += (uint32_t)gap + 1;
	else if (found->n < RANGES_MAX)
		found->ranges[found->n++] = (struct page_range){ page, 1, advice };
}

/* Adds the pages of a mapping that are the probe's own, and its present pages of files. */
static void add_mapping(int pagemap, uintptr_t start, uintptr_t end, bool writable)
{
	uint64_t entries[ENTRIES];

	for (uintptr_t at = start; at < end; at += ENTRIES * PAGE) {
		size_t n = MIN((end - at) / PAGE, (uintptr_t)ENTRIES);
		ssize_t got = pread(pagemap, entries, n * sizeof(*entries),
				    (off_t)(at / PAGE * sizeof(*entries)));

		for (ssize_t i = 0; i < got / (ssize_t)sizeof(*entries); i++) {
			uintptr_t page = at + (uintptr_t)i * PAGE;

			if (!(entries[i] & PAGE_PRESENT))
				continue;
			if (entries[i] & PAGE_OF_FILE)
				add_page(page, MADV_POPULATE_READ);
			else if (writable && entries[i] & PAGE_EXCLUSIVE)
				add_page(page, MADV_POPULATE_WRITE);
		}
	}
}

static void add_line(void *data, const char *line)
{
	const int *pagemap = data;
	unsigned long start, end;
	char rights[5];

	if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && rights[0] == 'r' &&
	    rights[3] == 'p')
		add_mapping(*pagemap, start, end, rights[1] == 'w');
}

_noreturn_ void agent_probe_end(void)
{
	int pagemap;

	/* If a process is not dumpable, its page map belongs to root. */
	(void)prctl(PR_SET_DUMPABLE, 1);
	pagemap = sys_open("/proc/self/pagemap", O_RDONLY, 0);
	if (pagemap < 0 || cloner_read_maps(add_line, &pagemap) < 0)
		found->n = 0;
	_exit(0);
}

/* A probe must write neither to the broker's socket nor to the zygote's log. */
static void hide_streams(void)
{
	int null = sys_open("/dev/null", O_RDWR, 0);
	const int hidden[] = { 0, 1, 2, WARM_FD };

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (dup2(null, hidden[i]) < 0)
			_exit(1);
	(void)close(null);
}

/* Takes all free pieces of the heap, so that the pieces that programs get lie side by side at its end. */
static void fill_heap(void)
{
	size_t size = HEAP_PIECE;

	while (size >= 24) {
		char *piece = malloc(size);

		if (piece && piece + size + 64 < (char *)sbrk(0) - mallinfo2().keepcost)
			continue;
		free(piece);
		size = size > 1032 ? size / 4 * 3 : size - 16;
	}
}

bool agent_probe(void)
{
	pid_t pid;

	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (found == MAP_FAILED)
		return false;
	fill_heap();
	pid = _Fork();
	if (pid == 0) {
		hide_streams();
		return true;
	}
	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		wanted = *found;
	/* No memory may be shared with programs. */
	(void)munmap(found, sizeof(*found));
	return false;
}

void agent_ask_pages(void)
{
	for (size_t i = 0; i < wanted.n; i++)
		(void)madvise((void *)wanted.ranges[i].start, wanted.ranges[i].n_pages * PAGE,
			      wanted.ranges[i].advice);
}
