/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int on = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0),
	    n_closed = 0, total = 0;
	struct epoll_event ev = { EPOLLIN, { .fd = s } };

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (void *)&at, sizeof(at)) || listen(s, 5) || getsockname(s, (void *)&at, &len)) {
		perror("listen");
		return 1;
	}
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			int c = socket(AF_INET, SOCK_STREAM, 0);
			char text[20];
			int n = snprintf(text, sizeof(text), "client");

			if (connect(c, (void *)&at, sizeof(at)))
				_exit(1);
			_exit(write(c, text, (size_t)n) != n);
		}
	epoll_ctl(ep, EPOLL_CTL_ADD, s, &ev);
	while (n_closed < 3) {
		struct epoll_event got[4];
		int n = epoll_wait(ep, got, 4, 5000);

		if (n <= 0)
			return 2;
		for (int i = 0; i < n; i++) {
			char buf[100];
			ssize_t k;

			if (got[i].data.fd == s) {
				ev.data.fd = accept4(s, NULL, NULL, 0);
				epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
				continue;
			}
			k = read(got[i].data.fd, buf, sizeof(buf));
			total += (int)k;
			if (k == 0) {
				close(got[i].data.fd);
				n_closed++;
			}
		}
	}
	while (wait(NULL) > 0)
		;
	printf("%d bytes from %d clients\n", total, n_closed);
	return 0;
}
