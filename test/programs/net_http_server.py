# SPDX-License-Identifier: Apache-2.0
import http.server
import json
import threading
import urllib.request

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"path": self.path, "agent": "Python" in self.headers["User-Agent"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.send_response(201)
        self.end_headers()
        self.wfile.write(self.rfile.read(int(self.headers["Content-Length"]))[::-1])

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://localhost:{server.server_address[1]}"
print(urllib.request.urlopen(base + "/a?b=c").read().decode())
answer = urllib.request.urlopen(base + "/x", data=b"abc")
print(answer.status, answer.read())
try:
    urllib.request.urlopen("http://localhost:1/")
except OSError as problem:
    print(type(problem).__name__, problem.reason.errno)
server.shutdown()
