/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *list;
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char text[20] = "", name[64];
	int s, r = getaddrinfo("localhost", "0", &hints, &list);

	if (r) {
		puts(gai_strerror(r));
		return 1;
	}
	s = socket(list->ai_family, list->ai_socktype, 0);
	bind(s, list->ai_addr, list->ai_addrlen);
	getsockname(s, (void *)&at, &len);
	sendto(s, "datagram", 8, 0, (void *)&at, len);
	printf("%d\n", poll(&(struct pollfd){ s, POLLIN, 0 }, 1, 1000));
	r = (int)recv(s, text, sizeof(text), 0);
	printf("%d %s\n", r, text);
	gethostname(name, sizeof(name));
	printf("%d\n", strlen(name) > 0);
	r = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in none = { .sin_family = AF_INET,
				    .sin_port = htons(1),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	r = connect(r, (void *)&none, sizeof(none));
	printf("%d %s\n", r, strerror(errno));
	freeaddrinfo(list);
	return 0;
}
