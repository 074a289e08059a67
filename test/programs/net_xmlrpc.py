# SPDX-License-Identifier: Apache-2.0
import queue
import socket
import threading
import xmlrpc.client
import xmlrpc.server

ready = queue.Queue()

def serve():
    with xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        server.register_function(pow)
        ready.put(server.server_address[1])
        server.handle_request()

thread = threading.Thread(target=serve)
thread.start()
print(xmlrpc.client.ServerProxy(f"http://127.0.0.1:{ready.get()}").pow(2, 10))
thread.join()
a, b = socket.socketpair()
a.sendall(b"x" * 10)
print(b.recv(100), socket.inet_aton("127.0.0.1"), socket.gethostbyname("localhost"))
