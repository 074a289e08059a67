# SPDX-License-Identifier: Apache-2.0
python3 - <<'END' &
import socket
s = socket.create_server(("127.0.0.1", 18765))
open("ready", "w").close()
c, _ = s.accept()
c.sendall(c.recv(100).upper())
c.close()
END
until [ -e ready ]; do sleep 0.02; done
exec 5<>/dev/tcp/127.0.0.1/18765
echo "from bash" >&5
cat <&5
wait
(echo x > /dev/tcp/127.0.0.1/1) 2>/dev/null || echo "refused"
