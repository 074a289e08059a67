/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(void)
{
	char dir[] = "/tmp/x-XXXXXX", *names[10], line[100], cwd[200];
	struct stat st;
	size_t n = 0;
	FILE *f;
	char *map;
	int fd;

	if (!mkdtemp(dir) || chdir(dir))
		return 1;
	f = fopen("a.txt", "w+");
	for (int i = 0; i < 100; i++)
		fprintf(f, "line %d\n", i);
	fseek(f, 0, SEEK_SET);
	printf("%s", fgets(line, sizeof(line), f));
	fclose(f);
	mkdir("sub", 0750);
	symlink("a.txt", "link");
	link("a.txt", "hard");
	DIR *d = opendir(".");
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			names[n++] = strdup(e->d_name);
	closedir(d);
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++)
		printf("%s ", names[i]);
	stat("hard", &st);
	printf("%ld %ld %o\n", (long)st.st_nlink, (long)st.st_size, st.st_mode & 07777);
	fd = open("map", O_RDWR | O_CREAT, 0600);
	ftruncate(fd, 8192);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(map + 5000, "mapped");
	msync(map, 8192, MS_SYNC);
	pread(fd, line, 7, 5000);
	puts(line);
	fd = open("none", O_RDONLY);
	printf("%d %s\n", fd, strerror(errno));
	printf("%s\n", getcwd(cwd, sizeof(cwd)) ? "cwd" : "lost");
	rename("map", "moved");
	unlink("moved"), unlink("a.txt"), unlink("hard"), unlink("link"), rmdir("sub");
	printf("%d\n", chdir("/tmp") || rmdir(dir));
	setenv("TZ", "America/New_York", 1), tzset();
	time_t zero = 0;
	strftime(line, sizeof(line), "%F %H:%M %Z", localtime(&zero));
	puts(line);
	return 0;
}
