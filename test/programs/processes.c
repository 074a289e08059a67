/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t got;
static void caught(int n)
{
	got = n;
}

int main(void)
{
	int p[2], status,
		*shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);
	int id = shmget(IPC_PRIVATE, 4096, 0600), pair[2], fd;
	char *mem = shmat(id, NULL, 0), buf[20] = "";
	struct sigaction sa = { .sa_handler = caught };

	sigaction(SIGCHLD, &sa, NULL);
	if (pipe(p) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return 1;
	if (fork() == 0) {
		*shared = 42;
		strcpy(mem, "sysv");
		dup2(p[1], 1);
		(void)!write(pair[1], "dgram", 5);
		execlp("echo", "echo", "from exec", NULL);
	}
	close(p[1]);
	while (wait(&status) < 0 && errno == EINTR)
		;
	printf("%zd ", read(p[0], buf, sizeof(buf)));
	printf("%d %s %d %d\n", *shared, mem, WEXITSTATUS(status), got == SIGCHLD);
	memset(buf, 0, sizeof(buf));
	status = (int)read(pair[0], buf, sizeof(buf));
	printf("%d %s\n", status, buf);
	shmctl(id, IPC_RMID, NULL);
	if (fork() == 0)
		abort();
	while (wait(&status) < 0 && errno == EINTR)
		;
	printf("%d %d\n", WIFSIGNALED(status), WTERMSIG(status));
	fd = shm_open("/seg", O_CREAT | O_RDWR, 0600);
	printf("%d ", ftruncate(fd, 100));
	printf("%d\n", shm_unlink("/seg"));
	fd = memfd_create("m", 0);
	printf("%zd\n", write(fd, "abc", 3));
	fflush(stdout);
	raise(SIGSEGV);
	return 0;
}
