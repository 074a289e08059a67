# SPDX-License-Identifier: Apache-2.0
"""README.md and doc/ are followed to the letter: every block runs and prints what the page says (test/lib/pages.py)."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest

import pages
from daemon import Daemon
from oracle import PYTHON
from program import BINARY, ROOT, Atoll
from resident import wait_until

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
import atoll as package  # noqa: E402

pytestmark = pytest.mark.modes("root")
NOT_RUN = ROOT / "test" / "golden" / "doc-not-run.txt"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
NEEDS = {"curl": r"\bcurl\b", "jq": r"\bjq\b", "openssl": r"\bopenssl\b"}


@pytest.fixture
def reader(served, work, monkeypatch):
    (work / "bin").mkdir()
    (work / "bin" / "atoll").symlink_to(BINARY)
    (work / "bin" / "python3").symlink_to(PYTHON)
    (work / "examples").symlink_to(ROOT / "examples")
    address = f"127.0.0.1:{served.web.port}"
    (work / "atoll.pc").write_text(f"Name: atoll\nDescription: this tree\nVersion: 0\nCflags: -I{ROOT}/include\nLibs: -L{BINARY.parent} -latoll\n")
    environment = {"PATH": f"{work}/bin:{PATH}", "HOME": str(work), "LANG": "C.UTF-8", "ATOLL_URL": f"http://{address}",
                   "PYTHONPATH": str(ROOT / "sdk/python/src"), "ATOLL_POOL": "off", "XDG_RUNTIME_DIR": str(work),
                   "PKG_CONFIG_PATH": str(work), "LD_LIBRARY_PATH": str(BINARY.parent)}
    for name in ("ATOLL_URL", "PATH"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend(work)
    monkeypatch.setattr(package, "_default", None)
    one = pages.Reader(work, environment, {"localhost:8700": address, "127.0.0.1:8700": address})
    yield one
    one.close()
    if package._default:
        package._default.close()


def follow(reader, page, marks=("", "file")):
    for block in pages.blocks(page):
        if block.mark in marks:
            missing = [tool for tool, word in NEEDS.items() if re.search(word, block.text) and not shutil.which(tool, path=PATH)]
            if missing:
                pytest.skip(f"{block}: {missing[0]} is not installed")
            reader.follow(block)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(reader, page):
    follow(reader, page)


@pytest.fixture
def nginx(reader, work):
    """Starts nginx with the page's site in front of the daemon at this address; the name of the site leads there."""
    if not shutil.which("nginx", path=PATH):
        pytest.skip("nginx is not installed")
    with contextlib.ExitStack() as stack:
        def start(address):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            site = (work / "site.conf").read_text().replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8700", address)
            (work / "site.conf").write_text(re.sub(r"/etc/ssl/\w+/", f"{work}/", site))
            (work / "nginx.conf").write_text(f"daemon off; pid {work}/pid; error_log {work}/error.log; user root; events {{}}\nhttp {{ access_log off; "
                                             f"client_body_temp_path {work}/bodies; include {work}/upgrade.conf; include {work}/site.conf; }}\n")
            (work / ".curlrc").write_text(f'connect-to = "sandbox.example.org:443:127.0.0.1:{port}"\n')
            popen = stack.enter_context(subprocess.Popen([shutil.which("nginx", path=PATH), "-p", work, "-c", work / "nginx.conf"]))
            stack.callback(popen.terminate)
            wait_until(lambda: popen.poll() is not None or (work / "pid").exists())
            assert popen.poll() is None, (work / "error.log").read_text()
        yield start


def test_nginx(reader, nginx, mode, stage, work):
    """The page's settings, tokens, certificate and site, and its requests through them."""
    page = ROOT / "doc/howto/nginx.md"
    reader.places.clear()  # its daemon has tokens, unlike that of the other pages
    follow(reader, page)
    settings = work / "atoll.yaml"
    settings.write_text(settings.read_text().replace("/etc/atoll/tokens", f"{work}/tokens"))
    served = Daemon(Atoll(mode, stage), stage.scratch(mode, "nginx"), "--config", settings)
    try:
        nginx(served.address)
        follow(reader, page, marks=("nginx",))
    finally:
        served.end()


def test_systemd(reader, atoll, work):
    """systemd accepts the unit with the page's drop-in, and the daemon the page's settings."""
    follow(reader, ROOT / "doc/howto/systemd.md")
    done = atoll.run(["serve", "--config", work / "atoll.yaml", "--listen", "127.0.0.1:0", "--socket", "off", "--state-dir", work / "state",
                      "--until-eof"])
    assert done.returncode == 0, done
    if not shutil.which("systemd-analyze", path=PATH):
        pytest.skip("systemd-analyze is not installed")
    for unit in ("atoll.service", "atoll.socket"):
        (work / unit).write_text((ROOT / "packaging" / unit).read_text().replace("/usr/bin/atoll", str(BINARY)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", work / "atoll.service", work / "atoll.socket"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and "atoll" not in done.stderr, done


def test_tables_are_those_of_the_product(served):
    command = [PYTHON, ROOT / "tools" / "reference.py", "--check", "--atoll", BINARY, "--url", f"http://127.0.0.1:{served.web.port}"]
    if os.environ.get("ATOLL_GOLDEN_UPDATE"):
        command.remove("--check")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_picture_shows_what_the_program_says(work):
    """Lines that depend on the host, such as versions, may differ."""
    subprocess.run([PYTHON, ROOT / "tools" / "terminal-picture.py", work / "new.svg"], check=True, timeout=60)
    steady = re.compile(r">(?:<tspan.*|atoll: .*|exit code.*|\{\"kind.*)")
    shown, new = (steady.findall(path.read_text(encoding="utf-8")) for path in (ROOT / "doc" / "terminal.svg", work / "new.svg"))
    assert shown == new and len(shown) == 7, "tools/terminal-picture.py draws it anew"


def test_links_lead_somewhere():
    """To a file of this repository, and to a heading where they name one."""
    for page in pages.PAGES:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), f"{page}: {target}"
            headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in path.read_text(encoding="utf-8").split("\n")
                        if line.startswith("#")} if path.suffix == ".md" else set()
            assert not anchor or anchor in headings, f"{page}: {target}#{anchor}"


def test_blocks_that_do_not_run_are_listed():
    """With their reasons: a page must not fall out of the test unseen."""
    found = [block for page in pages.PAGES for block in pages.blocks(page) if block.mark in ("not run", "fresh")]
    listed = "".join(f"{block.page.relative_to(ROOT)}: {block.mark}: {block.word}: {block.text.splitlines()[0]}\n" for block in found
                     if block.page.name != "python.md")
    if os.environ.get("ATOLL_GOLDEN_UPDATE"):
        NOT_RUN.write_text(listed, encoding="utf-8")
    assert NOT_RUN.read_text(encoding="utf-8") == listed, "ATOLL_GOLDEN_UPDATE=1 writes it anew"
    assert all(len(block.word.split()) >= 3 for block in found)


def test_every_fence_is_understood():
    """No block escapes the pattern of test/lib/pages.py, and each has a language."""
    for page in pages.PAGES:
        text = page.read_text(encoding="utf-8")
        fences = len(re.findall(r"^ *```", text, re.M))
        found = list(pages.blocks(page))
        assert fences == 2 * (len(found) + sum(block.printed is not None for block in found)), page
        for block in found:
            assert block.mark or block.language in pages.FOLLOW, f"{block}: which language?"
