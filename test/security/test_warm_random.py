# SPDX-License-Identifier: Apache-2.0
"""M05 of test/security/cases.md: programs that were forked from one interpreter draw different numbers.
"""
import time

import pytest

from resident import front, own

pytestmark = pytest.mark.cold("it is about warm cells")


# ------------------------------------------------------------------------------------ M05: random numbers


DRAWS = """
import json, os, random, secrets, ssl, sqlite3, tempfile, uuid, multiprocessing, multiprocessing.process, email.generator, threading, hashlib
out = dict(random=random.random(), bits=random.getrandbits(64), choice=''.join(random.choices('abcdefgh', k=30)), own=random.Random().random(),
    system=random.SystemRandom().random(), secrets=secrets.token_hex(8), urandom=os.urandom(8).hex(), getrandom=os.getrandom(8).hex(),
    uuid1=str(uuid.uuid1()), node=uuid.getnode(), uuid4=str(uuid.uuid4()), temp=next(tempfile._get_candidate_names()), mkstemp=tempfile.mkstemp()[1],
    tls=ssl.RAND_bytes(8).hex(), sqlite=sqlite3.connect(':memory:').execute('select hex(randomblob(8))').fetchone()[0],
    authkey=bytes(multiprocessing.process.current_process().authkey).hex(), boundary=email.generator._make_boundary())
try:
    import numpy as np
    out.update(rand=float(np.random.rand()), integers=int(np.random.randint(1 << 62)), normal=float(np.random.normal()), rng=float(np.random.default_rng().random()),
        permutation=np.random.permutation(30).tolist(), state=int(np.random.get_state()[1][5]), seed=str(np.random.SeedSequence().entropy),
        philox=int(np.random.Philox().random_raw()), legacy=float(np.random.RandomState().rand()))
except ImportError: pass
out['hash'] = hash('text')
print(json.dumps(out))
"""


def draw(front, options=()):
    return front.probe(DRAWS, options=options)


@pytest.mark.parametrize("tier", ["light", "base", "numpy"])
def test_M05_siblings_draw_different_numbers(own, tier):
    """Of everything that draws. What the interpreter fixed when it started, the seed of its hashes, siblings share: that is
    documented, and ends with the zygote."""
    code = DRAWS if tier == "numpy" else DRAWS.replace("import numpy as np", "raise ImportError")
    if tier == "light":  # nothing in the source tells what it imports, so nothing is loaded ahead
        code = f"exec(bytes.fromhex('{code.encode().hex()}'))"
    front = own("--spares", "4").front()  # a pool that others use may have spares of a zygote that it has replaced
    front.probe(code)
    zygotes = front.pool.zygotes()
    draws = [front.probe(code) for _ in range(6)]
    shared = [key for key in draws[0] if len({str(d[key]) for d in draws}) < len(draws)]
    if len(zygotes) == 1 and zygotes == front.pool.zygotes():
        assert len({d["hash"] for d in draws}) == 1
    assert [key for key in shared if key != "hash"] == []
    assert tier != "numpy" or "rand" in draws[0]


FORKS = """
import os
# By a route that imports nothing: the generator behind the functions of a module that was loaded ahead.
found = [c.__subclasses__() for c in object.__subclasses__() if c.__module__ == "_random"]
numbers = [found[0][0].seed.__globals__["_inst"].getrandbits(128)] if found else []
import json, random
reader, writer = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.write(writer, b"%d " % random.getrandbits(128))
        os._exit(0)
    os.wait()
numbers += [random.getrandbits(128), *map(int, os.read(reader, 4096).split())]
print(json.dumps(dict(enumerate(numbers))))
"""


def test_M05_children_and_hidden_generators_draw_different_numbers(own):
    """What a program forks draws its own numbers, and a generator that the program finds without an import is seeded."""
    front = own("--spares", "4").front()
    front.probe(FORKS)
    draws = [number for _ in range(4) for number in front.probe(FORKS).values()]
    assert len(set(draws)) == len(draws)


SCRIPTS = {
    "ruby": "require 'securerandom'; require 'tmpdir'; puts [rand, Random.rand, Random.new.rand, SecureRandom.hex(8), [*1..40].shuffle.join, Random.new_seed, Dir.mktmpdir].join(' ')",
    "perl": "use File::Temp 'tempfile'; my ($h, $n) = tempfile(); print join ' ', rand, int(rand(1e15)), $n, join('', sort { rand() <=> rand() } 'a'..'p')",
    "php": "<?php echo implode(' ', [mt_rand(), rand(), random_int(0, PHP_INT_MAX), lcg_value(), uniqid('', true), bin2hex(random_bytes(8)), str_shuffle('abcdefghijklmnopqrst'), implode(array_rand(array_flip(range(1, 99)), 9)), tempnam('/tmp', 'x')]);",
    "bash": "echo $RANDOM$RANDOM$RANDOM $SRANDOM $(mktemp)",
    "lua": "print(math.random(), math.random(1 << 62), os.tmpname())",
    "javascript": "const c = require('crypto'), fs = require('fs'); console.log(Math.random(), Math.random(), c.randomUUID(), c.randomBytes(8).toString('hex'), fs.mkdtempSync('/tmp/x'))",
}


@pytest.mark.parametrize("language", list(SCRIPTS))
def test_M05_other_languages(front, language):
    """Word by word, over several runs through the pool."""
    rows = []
    for _ in range(7):
        result = front.result(["-l", language, "-c", SCRIPTS[language]])
        if result["status"] == "setup_error":
            pytest.skip(f"{language} is not installed")
        assert result["status"] == "success", result
        rows.append(result["stdout"].split())
        time.sleep(0.05)
    same = [(i, column) for i, column in enumerate(zip(*rows)) if len(set(column)) < len(rows)]
    assert same == [], same


@pytest.mark.modes("root")
def test_M05_a_new_zygote_has_a_new_seed(own):
    front = own("--rotate-forks", "4", "--spares", "2").front()
    draws, zygotes = [], set()
    deadline = time.monotonic() + 90
    while len({d["hash"] for d in draws}) < 3 or len(zygotes) < 3:  # one may come and go between two looks
        assert time.monotonic() < deadline, "it is not replaced"
        draws.append(draw(front))
        zygotes |= set(front.pool.zygotes())
    assert len({d["random"] for d in draws}) == len({d["authkey"] for d in draws}) == len(draws)
