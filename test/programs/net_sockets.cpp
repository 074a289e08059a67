#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <thread>
#include <unistd.h>

struct Socket {
	int fd;
	explicit Socket(int f) : fd(f) { if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket"); }
	~Socket() { close(fd); }
	Socket(const Socket &) = delete;
};

int main()
{
	sockaddr_in6 at{};
	at.sin6_family = AF_INET6;
	at.sin6_addr = in6addr_loopback;
	socklen_t len = sizeof(at);
	Socket s(socket(AF_INET6, SOCK_STREAM, 0));
	if (bind(s.fd, reinterpret_cast<sockaddr *>(&at), len) || listen(s.fd, 3) || getsockname(s.fd, reinterpret_cast<sockaddr *>(&at), &len))
		throw std::system_error(errno, std::generic_category(), "listen");
	std::thread client([&] {
		Socket c(socket(AF_INET6, SOCK_STREAM, 0));
		if (connect(c.fd, reinterpret_cast<sockaddr *>(&at), len)) std::terminate();
		std::string big(200000, 'x');
		for (size_t done = 0; done < big.size();) { ssize_t n = send(c.fd, big.data() + done, big.size() - done, 0); if (n < 0) break; done += static_cast<size_t>(n); }
	});
	Socket p(accept(s.fd, nullptr, nullptr));
	size_t total = 0;
	char buf[4096];
	for (ssize_t n; (n = recv(p.fd, buf, sizeof(buf), 0)) > 0;) total += static_cast<size_t>(n);
	client.join();
	std::cout << total << '\n';
	try { Socket raw(socket(AF_INET, SOCK_STREAM, 77)); } catch (const std::system_error &e) { std::cout << "no such socket\n"; }
	throw std::runtime_error("not caught");
}
