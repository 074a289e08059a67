# SPDX-License-Identifier: Apache-2.0
import selectors
import socket

listener = socket.socket(socket.AF_INET6)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("::1", 0))
listener.listen()
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ, "listener")
client = socket.create_connection(listener.getsockname()[:2])
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
client.sendall(b"ping " * 3)
client.shutdown(socket.SHUT_WR)
got = b""
done = False
while not done:
    for key, _ in selector.select(5):
        if key.data == "listener":
            peer, _ = listener.accept()
            selector.register(peer, selectors.EVENT_READ, "peer")
        else:
            piece = key.fileobj.recv(4)
            got += piece
            done = not piece
print(got, socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)[0][1])
