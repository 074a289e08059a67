# SPDX-License-Identifier: Apache-2.0
import socket
import socketserver
import threading

class Upper(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(data.upper(), self.client_address)

with socketserver.ThreadingUDPServer(("127.0.0.1", 0), Upper) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        for word in (b"one", b"two"):
            s.sendto(word, server.server_address)
            print(s.recvfrom(100)[0])
    server.shutdown()
