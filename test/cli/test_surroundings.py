# SPDX-License-Identifier: Apache-2.0
"""What ordinary programs expect around them: terminals of their own, the usual tables of /etc, CA certificates, /var/tmp."""
import json
import os

import pytest

SEES = r"""
import json, mimetypes, os, pty, socket, ssl, subprocess
out = {}
pid, fd = pty.fork()
if pid == 0:
    os.execvp('sh', ['sh', '-c', 'test -t 0 && tty && echo typed > /dev/tty && stty rows 7 cols 9 && stty size'])
said = b''
try:
    while chunk := os.read(fd, 1000):
        said += chunk
except OSError:
    pass
os.close(fd)
out['fork'] = [said.decode(), os.waitpid(pid, 0)[1]]
out['script'] = subprocess.run(['script', '-qec', 'tty; exit 3', '/dev/null'], stdin=subprocess.DEVNULL, capture_output=True, text=True)
out['script'] = [out['script'].stdout, out['script'].returncode]
pairs = []
try:
    while len(pairs) < 100:
        pairs.append(pty.openpty())
except OSError:
    out['many'] = len(pairs)
st = os.stat(os.ttyname(pairs[0][1]))
out['owner'] = [st.st_uid, st.st_gid, oct(st.st_mode), os.readlink('/dev/ptmx')]
out['os'] = open('/etc/os-release').read()
out['tables'] = [socket.getservbyname('https'), socket.getprotobyname('udp'), mimetypes.guess_type('a.webp')[0]]
out['certificates'] = [ssl.create_default_context().cert_store_stats()['x509_ca'], sorted(os.listdir('/etc/ssl')), len(os.listdir('/etc/ssl/certs'))]
with open('/var/tmp/a', 'w') as f:
    f.write('b')
out['tmp'] = [os.path.realpath('/var/tmp'), open('/tmp/a').read()]
print(json.dumps(out))
"""


@pytest.mark.parametrize("way", ["cold", "warm"])
def test_surroundings(atoll, mode, residents, way):
    seen = json.loads((residents.front(mode) if way == "warm" else atoll).python(SEES)["stdout"])
    assert seen["fork"] == ["/dev/pts/0\r\ntyped\r\n7 9\r\n", 0], seen
    assert seen["script"] == ["/dev/pts/0\n", 3], seen
    assert seen["many"] == 16, seen
    assert seen["owner"] == [1000, 1000, "0o20620", "pts/ptmx"], seen
    assert seen["os"] == open("/etc/os-release").read()
    assert seen["tables"] == [443, 17, "image/webp"], seen
    assert seen["certificates"] == [seen["certificates"][0], ["certs"], len(os.listdir("/etc/ssl/certs"))] and seen["certificates"][0] > 50, seen
    assert seen["tmp"] == ["/tmp", "b"], seen


@pytest.mark.modes("root")  # its file is another than that of the others, for each user
def test_java_trusts_someone(atoll):
    """Its store of certificates is a link into /etc/ssl, too; without it the first HttpClient throws."""
    code = ("public class Main { public static void main(String[] a) throws Exception {"
            " var f = javax.net.ssl.TrustManagerFactory.getInstance(\"PKIX\"); f.init((java.security.KeyStore) null);"
            " System.out.println(((javax.net.ssl.X509TrustManager) f.getTrustManagers()[0]).getAcceptedIssuers().length > 50); } }")
    assert atoll.result(["-l", "java", "-c", code], timeout=60)["stdout"] == "true\n"
