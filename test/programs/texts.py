# SPDX-License-Identifier: Apache-2.0
import re
import textwrap
import unicodedata

s = "naïve café – 日本語 🎉 ß"
print(len(s), s.upper(), s.casefold(), s.encode("utf-8")[:6])
print([unicodedata.name(c) for c in "é🎉"], unicodedata.normalize("NFD", "é").encode())
print(re.findall(r"(?P<word>\w+)@(\w+)\.org", "ada@lovelace.org, x@y.com, bo@site.org"))
print(re.sub(r"(\d+)", lambda m: str(int(m[1]) * 2), "3 apples and 12 pears"))
print(textwrap.fill("The quick brown fox jumps over the lazy dog", 20))
print(f"{3.14159:>10.2f}|{255:#x}|{1e6:,.0f}|{'mid':^9}|{True!r}")
print("ümlaut".encode("latin-1"), b"\xff\xfe".decode("utf-8", "replace"))
open("größe.txt", "w").write("ok")
import os
print(sorted(os.listdir(".")))
