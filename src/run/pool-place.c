/* SPDX-License-Identifier: Apache-2.0 */
/* See pool-place.h. */
#include "run/pool-place.h"

#include "base/fd.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char word_auto[] = "auto", word_off[] = "off";

int pool_place_usual(char **ret)
{
	const char *dir = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");

	*ret = NULL;
	if (!dir || dir[0] != '/')
		return 0;
	return asprintf(ret, "%s/atoll/pool.sock", dir) < 0 ? -ENOMEM : 0;
}

int pool_place_find(const char *option, char **ret)
{
	const char *word = option ? option : getenv("ATOLL_POOL");

	if (!option && (!word || !*word || strcmp(word, word_auto) == 0))
		return pool_place_usual(ret);
	*ret = NULL;
	if (!*word || strcmp(word, word_off) == 0)
		return 0;
	*ret = strdup(word);
	return *ret ? 0 : -ENOMEM;
}

bool pool_place_is_auto(void)
{
	const char *word = getenv("ATOLL_POOL");

	return word && strcmp(word, word_auto) == 0;
}

int pool_place_process(const char *path, pid_t *ret)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred peer;
	socklen_t size = sizeof(peer);
	size_t n = strlen(path);

	if (n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, n);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	*ret = peer.pid;
	return 0;
}
