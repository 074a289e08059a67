# SPDX-License-Identifier: Apache-2.0
"""The reader of pages (test/lib/pages.py) finds every block, and notices when a page is wrong."""
import os

import pytest

import pages

PAGE = """# Page

<!-- file: name.txt -->

```text
Ada
```

```sh
who=$(cat name.txt)
```
```console
$ echo "I am $who"; echo more; echo last
I am …
…
last
$ exit_with() { return 3; }; exit_with; echo "code $?"
code 3
```

```python
print(6 * 7)
```
```text
42
```
<!-- not run: there is no such program -->

```sh
no-such-program
```
"""


@pytest.fixture
def reader(tmp_path):
    one = pages.Reader(tmp_path, {"PATH": os.environ["PATH"]})
    yield one
    one.close()


def follow(reader, text):
    page = pages.ROOT / "page.md"  # what messages name; the text is not there
    for block in pages.blocks_of(page, text):
        if block.mark != "not run":
            reader.follow(block)


def test_a_page_is_followed(reader):
    follow(reader, PAGE)
    found = list(pages.blocks_of(pages.ROOT / "page.md", PAGE))
    assert [(block.mark, block.language, block.line) for block in found] == [
        ("file", "text", 5), ("", "sh", 9), ("", "console", 12), ("", "python", 21), ("not run", "sh", 29)]


@pytest.mark.parametrize("right, wrong, says", [
    ("I am …", "You are …", "prints"), ("…\nlast", "last", "prints"), ("code 3", "code 4", "prints"), ("\n42\n", "\n43\n", "prints"),
    ("who=$(cat name.txt)", "who=$(cat nothing.txt)", "failed"), ("who=$(cat name.txt)", "echo $unset", "failed"),
    ("name.txt -->", "other.txt -->", "failed"), ("<!-- not run: there is no such program -->", "", "failed")])
def test_a_wrong_page_is_noticed(reader, right, wrong, says):
    assert right in PAGE
    with pytest.raises(AssertionError, match=says):
        follow(reader, PAGE.replace(right, wrong, 1))


def test_a_script_that_ends_early_is_noticed():
    block = next(pages.blocks_of(pages.ROOT / "page.md", PAGE))
    pages.assert_script_prints([(block, None), (block, "42")], "\n@@@ 0\nany\n\n@@@ 1\n42\n")
    with pytest.raises(AssertionError, match="it ended after 1 of 2"):
        pages.assert_script_prints([(block, None), (block, "42")], "\n@@@ 0\nany\n")
    with pytest.raises(AssertionError, match="prints"):
        pages.assert_script_prints([(block, "42")], "\n@@@ 0\n43\n")
