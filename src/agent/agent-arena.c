/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: a zygote's memory in huge pages.
 *
 * The fork of a program copies an entry for each page that the zygote has written to, and the program's end takes
 * it down: 0.15 µs a page, two thirds of a run's page tables. A huge page is one entry, and copies are still made
 * of 4 KiB: at the first write the program's entry is split.
 *
 * The kernel makes huge pages of aligned memory only. CPython asks for its memory in arenas of 1 MiB, which would lie
 * scattered between the libraries. So the agent gives the arenas of a zygote out of one area.
 */
#include "agent/agent.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { HUGE_PAGE = 2 << 20, ARENA = 1 << 20, AREA = 512 << 20 };

static struct {
	char *start; /* aligned; NULL: no arena has been asked for yet, or there is no room */
	size_t used;
} area;

static void unmap(char *from, const char *to)
{
	if (to > from)
		(void)munmap(from, (size_t)(to - from));
}

static char *align_up(char *at)
{
	return at + (-(uintptr_t)at & (HUGE_PAGE - 1));
}

/* Only addresses are reserved. */
static void reserve_area(void)
{
	char *all = (char *)syscall(SYS_mmap, NULL, AREA + HUGE_PAGE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		return;
	area.start = align_up(all);
	unmap(all, area.start);
	unmap(area.start + AREA, all + AREA + HUGE_PAGE);
}

static void *take_arena(void)
{
	char *arena;

	if (!area.start)
		reserve_area();
	arena = area.start + area.used;
	if (!area.start || area.used == AREA || mprotect(arena, ARENA, PROT_READ | PROT_WRITE) < 0)
		return NULL;
	area.used += ARENA;
	return arena;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *arena = NULL;

	if (agent.role == AGENT_IS_ZYGOTE && !addr && len == ARENA &&
	    prot == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS))
		arena = take_arena();
	return arena ? arena : (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(addr, len, prot, flags, fd, off);
}

/* A line of /proc/self/maps. Memory of which the kernel makes no huge pages stays as it is. */
static void join_line(void *data, const char *line)
{
	unsigned long start, end;
	char rights[5];

	(void)data;
	if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[1] != 'w' ||
	    rights[3] != 'p')
		return;
	for (char *at = align_up((char *)start); at + HUGE_PAGE <= (char *)end; at += HUGE_PAGE)
		(void)madvise(at, HUGE_PAGE, MADV_COLLAPSE);
}

void agent_join_pages(void)
{
	/* An arena that is not used makes the last huge page whole. */
	if (area.used % HUGE_PAGE)
		(void)take_arena();
	if (area.start)
		unmap(area.start + area.used, area.start + AREA);
	(void)!cloner_read_maps(join_line, NULL);
}
