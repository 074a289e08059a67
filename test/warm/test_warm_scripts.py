# SPDX-License-Identifier: Apache-2.0
"""Ruby, Perl, PHP, Lua and Bash forked from interpreters that are up: nothing but time tells such a run from a cold one.

programs/<language>.txt holds programs, each below a line `==== NAME [stdin=TEXT] [-- WORD…]`. Each runs with the pool switched
off and through `atoll pool`, and must leave the same output, exit code, signal and files. That a run was warm is told by
descriptor 100, which only such programs have.
"""
import contextlib
import json
import re
import shlex
import time
from pathlib import Path

import pytest

import resident
from program import MODES, Atoll

TABLES = Path(__file__).parent / "programs"
LANGUAGES = ["ruby", "perl", "php", "lua", "bash"]
EXTENSIONS = {"ruby": "rb", "perl": "pl", "php": "php", "lua": "lua", "bash": "sh"}
# Prints "warm" in a program that was forked.
TELL = {"ruby": "puts File.exist?('/proc/self/fd/100') ? 'warm' : 'cold'",
        "perl": "print -e '/proc/self/fd/100' ? 'warm' : 'cold', \"\\n\"",
        "php": "<?php echo file_exists('/proc/self/fd/100') || is_link('/proc/self/fd/100') ? 'warm' : 'cold', \"\\n\";",
        "lua": "os.execute('test -e /proc/$PPID/fd/100 && echo warm || echo cold')",
        "bash": "test -e /proc/$$/fd/100 && echo warm || echo cold"}
SEEN = ("status", "exit_code", "signal", "cause", "stdout", "stderr", "error", "files", "denials")


def cases(language):
    """(name, standard input, words, code) of each program of a table."""
    text = (TABLES / f"{language}.txt").read_text()
    for part in re.split(r"^==== ", text, flags=re.M)[1:]:
        head, code = part.split("\n", 1)
        name, *words = shlex.split(head)
        given = words.pop(0)[6:] if words and words[0].startswith("stdin=") else ""
        assert not words or words.pop(0) == "--", head
        yield pytest.param(language, given.replace("\\n", "\n"), words, code, id=f"{language}-{name}")


class Pair(resident.Pair):
    """The same request cold and warm."""

    def until_warm(self, language):
        end = time.monotonic() + 90
        while self.warm.result(["-l", language, "-c", TELL[language]])["stdout"] != "warm\n":
            assert time.monotonic() < end, f"{language} does not get warm"
            time.sleep(0.05)


@contextlib.contextmanager
def open_pair(mode, stage):
    it = Pair(Atoll(mode, stage), stage.scratch(mode, "pool") / "pool.sock")
    try:
        for language in LANGUAGES:
            it.until_warm(language)
        yield it
    finally:
        it.end()


@pytest.fixture(scope="module")
def pair(stage):
    with open_pair(MODES[0], stage) as it:
        yield it


@pytest.fixture
def leaks():
    """The pool of this module keeps sandboxes on purpose."""


def run(atoll, language, code, given="", words=(), env=None):
    """All of a result that is not time or memory."""
    request = {"language": language, "code": code, "stdin": given, "args": list(words), "env": env or {}}
    result = atoll.result(["--request", "-"], input=json.dumps(request), timeout=60)
    seen = {key: result[key] for key in SEEN}
    # Addresses of objects are never the same.
    for key in ("stdout", "stderr"):
        seen[key] = re.sub(r"0x[0-9a-f]{6,}", "0x", seen[key])
    return seen


@pytest.mark.matrix(3)
@pytest.mark.parametrize("language, given, words, code", [case for name in LANGUAGES for case in cases(name)])
def test_nothing_tells_it_from_cold(pair, language, given, words, code):
    assert run(pair.warm, language, code, given, words) == run(pair.cold, language, code, given, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tables_are_long(language):
    names = [case.id for case in cases(language)]
    assert len(names) >= 25 and len(set(names)) == len(names)


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_are_warm(pair, language):
    words, end = [], time.monotonic() + 60
    while words[-4:] != ["warm\n"] * 4:
        assert time.monotonic() < end, words
        words.append(pair.warm.result(["-l", language, "-c", TELL[language]])["stdout"])
    assert pair.cold.result(["-l", language, "-c", TELL[language]])["stdout"] == "cold\n"


RANDOM = {"ruby": "require 'securerandom'; p rand, Random.rand(2**64), Random.new.rand, Random.new_seed, [*1..99].shuffle, SecureRandom.hex",
          "perl": "print rand(), ' ', srand(), ' ', rand(), \"\\n\"",
          "php": "<?php echo mt_rand(), ' ', rand(), ' ', random_int(0, PHP_INT_MAX), ' ', lcg_value(), ' ', uniqid('', true), ' ',"
                 " implode(',', (array)array_rand(range(1, 999), 20)), ' ', str_shuffle('abcdefghijklmnop');",
          "lua": "print(math.random(0), math.random())",
          "bash": "echo $RANDOM$RANDOM$RANDOM $SRANDOM; shuf -i 1-99999 -n 3; mktemp -u"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_random_numbers_differ(pair, language):
    seen = [pair.warm.result(["-l", language, "-c", RANDOM[language]])["stdout"].split() for _ in range(8)]
    assert all(seen)
    for column in zip(*seen):
        assert len(set(column)) > 1 or language == "php", seen
    assert len({tuple(words) for words in seen}) == len(seen)


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_of_a_program_is_left(pair, language):
    """What one leaves in memory, in its files and in /tmp the next does not find."""
    leave = {"ruby": "$left = 1; Object.const_set(:LEFT, 1); ENV['LEFT'] = 'x'; File.write('/tmp/left', 'x'); File.write('left', 'x')",
             "perl": "$main::left = 1; $ENV{LEFT} = 'x'; for (qw(/tmp/left left)) { open my $f, '>', $_; print $f 'x' }",
             "php": "<?php $left = 1; define('LEFT', 1); putenv('LEFT=x'); touch('/tmp/left'); touch('left');",
             "lua": "left = 1 io.open('/tmp/left', 'w'):close() io.open('left', 'w'):close()",
             "bash": "left=1; export LEFT=x; touch /tmp/left left"}
    look = {"ruby": "p defined?(LEFT), $left, ENV['LEFT'], Dir['/tmp/*'], Dir['*']",
            "perl": "print defined $main::left ? 1 : 0, $ENV{LEFT} // 'none', join(',', glob '/tmp/* *')",
            "php": "<?php var_dump(isset($left), defined('LEFT'), getenv('LEFT'), glob('/tmp/*'), glob('*'));",
            "lua": "print(left) os.execute('echo $LEFT; ls /tmp .')",
            "bash": "echo [$left$LEFT]; ls /tmp ."}
    clean = pair.cold.result(["-l", language, "-c", look[language]])["stdout"]
    for _ in range(3):
        assert pair.warm.result(["-l", language, "-c", leave[language]])["status"] == "success"
        assert pair.warm.result(["-l", language, "-c", look[language]])["stdout"] == clean


@pytest.mark.parametrize("language", LANGUAGES)
def test_variables_and_words_of_the_request(pair, language):
    code = {"ruby": "p ENV['GREETING'], ARGV", "perl": "print $ENV{GREETING}, \"@ARGV\"",
            "php": "<?php echo getenv('GREETING'), $_SERVER['GREETING'], implode(' ', $argv);",
            "lua": "print(os.getenv('GREETING'), table.concat(arg, ' '))", "bash": "echo $GREETING $*"}[language]
    env = {"GREETING": "good day"}
    for words in ([], ["x y", ""], ["a"] * 200):
        warm = run(pair.warm, language, code, "", words, env)
        assert warm == run(pair.cold, language, code, "", words, env)
        assert "good day" in warm["stdout"] and warm["status"] == "success"


VARIABLES = {"ruby": {"RUBYOPT": "-w -rjson", "RUBYLIB": "/sandbox/lib", "HOME": "/tmp", "LC_ALL": "C"},
             "perl": {"PERL5OPT": "-Mstrict", "PERL5LIB": "/sandbox/lib", "PERL_HASH_SEED": "0", "LC_ALL": "C"},
             "php": {"PHP_INI_SCAN_DIR": "/nope", "TZ": "Asia/Tokyo", "HOME": "/tmp", "PHPRC": "/nope"},
             "lua": {"LUA_INIT": "print('init')", "LUA_PATH": "/sandbox/?.lua", "LC_ALL": "C"},
             "bash": {"BASH_ENV": "/sandbox/main.sh", "SHELLOPTS": "xtrace", "SHLVL": "5", "PS4": "> ", "LC_ALL": "C",
                      "BASH_FUNC_f%%": "() { echo imported; }"}}
SHOW = {"ruby": "p $VERBOSE, $LOAD_PATH, defined?(JSON), Gem.path, Encoding.default_external, Dir.home",
        "perl": "print join('|', @INC, sort keys %INC), \"\\n\"; print join(',', keys %{{ map { $_ => 1 } 1 .. 20 }}) if $ENV{PERL_HASH_SEED};"
                " $x = 'é'; print length($x)",
        "php": "<?php echo date('c', 0), PHP_VERSION, implode(',', get_loaded_extensions()), php_ini_loaded_file(), getenv('HOME');",
        "lua": "print(package.path, ('é'):upper(), os.setlocale())",
        "bash": "[ \"$1\" ] || set -- x; echo $- $SHLVL $(f 2>&1) ${#1}; x=é; echo ${#x}"}


@pytest.mark.parametrize("language, variable", [(name, v) for name in LANGUAGES for v in VARIABLES[name]])
def test_variables_that_count_when_it_starts(pair, language, variable):
    env = {variable: VARIABLES[language][variable]}
    assert run(pair.warm, language, SHOW[language], env=env) == run(pair.cold, language, SHOW[language], env=env)


@pytest.mark.parametrize("language, code", [
    ("ruby", "puts __FILE__, $0; require_relative 'lib/b'; raise 'x'"), ("perl", "print __FILE__, $0; die 'x'"),
    ("php", "<?php echo __FILE__, $argv[0]; throw new Exception('x');"), ("lua", "print(arg[0]) error('x')"),
    ("bash", "echo $0 $BASH_SOURCE; nope")])
def test_an_entry_of_another_name(pair, language, code):
    entry = f"src/main.{EXTENSIONS[language]}"
    request = json.dumps({"language": language, "entry": entry,
                          "files": {entry: code, "src/lib/b.rb": "puts __FILE__"}})
    cold, warm = ({key: front.result(["--request", "-"], input=request).get(key) for key in SEEN}
                  for front in (pair.cold, pair.warm))
    assert warm == cold and "/sandbox/src/main" in warm["stdout"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("limit", [["--timeout", "0.3"], ["--memory", "64m"]], ids=["time", "memory"])
def test_limits_hold(pair, language, limit):
    code = {"--timeout": {"ruby": "loop {}", "perl": "1 while 1", "php": "<?php while (1);", "lua": "while true do end", "bash": "while :; do :; done"},
            "--memory": {"ruby": "x = 'x' * (300 << 20); p x.sum", "perl": "$x = 'x' x (300 << 20); print length $x",
                         "php": "<?php $x = str_repeat('x', 300 << 20); echo strlen($x);", "lua": "x = ('x'):rep(300 << 20) print(#x)",
                         "bash": "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}"}}[limit[0]][language]
    cold, warm = (front.result([*limit, "-l", language, "-c", code]) for front in (pair.cold, pair.warm))
    assert (warm["status"], warm["cause"]["kind"], warm["_exit"]) == (cold["status"], cold["cause"]["kind"], cold["_exit"])
    assert warm["status"] != "success"


@pytest.mark.modes("rootless")
def test_an_ordinary_user(mode, stage):
    with open_pair(mode, stage) as it:
        for language in LANGUAGES:
            for case in list(cases(language))[:6]:
                _, given, words, code = case.values
                assert run(it.warm, language, code, given, words) == run(it.cold, language, code, given, words), case.id
