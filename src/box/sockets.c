/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel holds for a sandbox's sockets and charges to no cgroup: connections that nothing has accepted yet, and messages
 * that wait in routing sockets. Both are read from the files of its network namespace. Connections that were accepted are in the sum
 * as well, because the kernel counts them together.
 */
#include "box/sandbox.h"

#include "base/sys/textfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { CONNECTION_BYTES = 5 << 10, TEXT_MAX = 4096 };

/* The number behind the word, in a file with few lines. */
static int64_t read_word(pid_t pid, const char *file, const char *word)
{
	char path[64], text[TEXT_MAX];
	const char *at;
	long long n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, file);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, word);
	return at && sscanf(at + strlen(word), "%lld", &n) == 1 ? n : 0;
}

/* A line a socket, below a line of titles; the fifth column is what waits in it. */
static int64_t read_routing(pid_t pid)
{
	long long sum = 0, waits;
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/net/netlink", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	(void)!fscanf(f, "%*[^\n]");
	while (fscanf(f, "%*s %*s %*s %*s %lld%*[^\n]", &waits) == 1)
		sum += waits;
	(void)fclose(f);
	return sum;
}

int64_t sandbox_sockets_bytes(const struct sandbox *sb)
{
	/* Without namespaces a program has no such sockets, and the files are those of the host. */
	if (sb->pid <= 0 || !sb->kind->has_userns)
		return 0;
	return (read_word(sb->pid, "sockstat", "\nTCP: inuse ") +
		read_word(sb->pid, "sockstat6", "TCP6: inuse ")) *
		       CONNECTION_BYTES +
	       read_routing(sb->pid);
}
