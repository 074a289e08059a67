# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel and the sdist with the standard library alone.

pip runs a build backend in a fresh environment, into which it would have to download setuptools. The package has no compiled
part and no dependency, so packing its files is all there is to do, and `pip install` works without any network.
"""
import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EPOCH = (1980, 1, 1, 0, 0, 0)  # archives are the same for the same files


def _project():
    """The fields of [project] that metadata needs; a TOML parser exists since Python 3.11 only."""
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    section = text.split("[project]", 1)[1].split("\n[", 1)[0]
    fields = dict(re.findall(r'^([a-z-]+) = "([^"]*)"$', section, re.M))
    classifiers = re.search(r"^classifiers = \[(.*?)\]", section, re.M | re.S)
    return fields, re.findall(r'"([^"]*)"', classifiers.group(1)) if classifiers else []


def _metadata():
    fields, classifiers = _project()
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    lines = ["Metadata-Version: 2.1", "Name: " + fields["name"], "Version: " + fields["version"],
             "Summary: " + fields["description"], "License: Apache-2.0", "Requires-Python: " + fields["requires-python"]]
    lines += ["Classifier: " + word for word in classifiers]
    return "\n".join(lines + ["Description-Content-Type: text/markdown", "", readme])


def _sources(folder):
    """Names and bytes of the files below a folder, sorted."""
    for place, folders, names in sorted(os.walk(os.path.join(ROOT, folder))):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in sorted(names):
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                yield os.path.relpath(path, ROOT), file.read()


def _base():
    fields, _ = _project()
    return "%s-%s" % (fields["name"], fields["version"])


class _Wheel:
    """A wheel that is being written, with the hashes of its RECORD."""

    def __init__(self, directory):
        self.name = _base() + "-py3-none-any.whl"
        self._zip = zipfile.ZipFile(os.path.join(directory, self.name), "w", zipfile.ZIP_DEFLATED)
        self._record = []

    def add(self, name, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")
        self._record.append("%s,sha256=%s,%d" % (name, digest, len(data)))
        self._write(name, data)

    def _write(self, name, data):
        info = zipfile.ZipInfo(name, EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        self._zip.writestr(info, data)

    def close(self):
        info = _base() + ".dist-info/"
        self.add(info + "METADATA", _metadata().encode("utf-8"))
        self.add(info + "WHEEL", b"Wheel-Version: 1.0\nGenerator: atoll\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        self._write(info + "RECORD", ("\n".join(self._record + [info + "RECORD,,"]) + "\n").encode("utf-8"))
        self._zip.close()
        return self.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. A wheel that is built in a tree of Atoll notes the tree, whose build/atoll serves where no other program is found."""
    wheel = _Wheel(wheel_directory)
    for name, data in _sources("src"):
        wheel.add(os.path.relpath(name, "src"), data)
    tree = os.path.dirname(os.path.dirname(ROOT))
    if os.path.exists(os.path.join(tree, "include", "atoll", "atoll.h")):
        wheel.add("atoll/tree.txt", (tree + "\n").encode("utf-8"))
    return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 660: a wheel with one line, the place of the sources."""
    wheel = _Wheel(wheel_directory)
    wheel.add("atoll.pth", (os.path.join(ROOT, "src") + "\n").encode("utf-8"))
    return wheel.close()


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517."""
    name = _base() + ".tar.gz"
    files = [("PKG-INFO", _metadata().encode("utf-8"))]
    for path in ("pyproject.toml", "README.md"):
        with open(os.path.join(ROOT, path), "rb") as file:
            files.append((path, file.read()))
    files += list(_sources("src")) + list(_sources("build_backend"))
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz") as archive:
        for path, data in files:
            info = tarfile.TarInfo(_base() + "/" + path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return name
