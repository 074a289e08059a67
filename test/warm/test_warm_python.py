# SPDX-License-Identifier: Apache-2.0
"""Python programs that must not notice whether they were started or forked.

Each program runs cold (ATOLL_POOL=off) and through a pool, and both must give the same streams, exit code, status and
files. The table is also a list of what a program can see of its interpreter.
"""
import json
import re
import shutil
import subprocess
import time

import pytest

import resident
from program import MODES, Atoll


class Program:
    def __init__(self, code, *args, stdin=None, files=None, tier=None):
        self.code = code if isinstance(code, bytes) else code.encode()
        self.args, self.stdin, self.files = args, stdin, files or {}
        self.tier = tier  # the module that must be loaded ahead for it


P = Program

PROGRAMS = {
    # ------------------------------------------------------------------- the main module
    "globals": P("print([(k, v if k != '__loader__' else (type(v).__name__, v.name, v.path)) for k, v in globals().items()])"),
    "dir": P("x = 1\nprint(dir())"),
    "docstring": P("'''what this does'''\nprint(__doc__)"),
    "main-guard": P("def main(): print('main')\nif __name__ == '__main__': main()"),
    "main-module": P("import sys\nm = sys.modules['__main__']\nprint(m.__dict__ is globals(), m, m.__spec__, m.__builtins__)"),
    "annotations": P("x: int = 1\nprint(__annotations__)"),
    "import-main": P("import __main__\n__main__.y = 2\nprint(y)"),
    "pickle-main": P("import pickle\nclass A:\n    def __eq__(self, o): return True\nprint(pickle.loads(pickle.dumps(A())), pickle.dumps(A()))"),
    "dataclass": P("from dataclasses import dataclass, field\n@dataclass\nclass A:\n    x: int\n    y: list = field(default_factory=list)\nprint(A(1))"),
    "type-hints": P("import typing\nclass A:\n    x: 'B'\nclass B: pass\nprint(typing.get_type_hints(A))"),
    "future": P("from __future__ import annotations\ndef f(x: undefined): pass\nprint(f.__annotations__)"),
    "no-future": P("def f(x: int): pass\nprint(f.__annotations__, compile('1', '', 'eval').co_flags)"),
    "argv": P("import sys\nprint(sys.argv, sys.orig_argv, sys.executable)", "a", "ü b", "-x", ""),
    "path": P("import sys\nprint(sys.path, sys.prefix, sys.flags, sys.warnoptions, sys._xoptions)"),
    # Nothing in the source tells what it imports, so nothing was loaded ahead.
    "hidden-import": P("load = __import__\nprint(load('json').dumps([1]), load('json').__spec__, list(load('sys').modules))"),
    "hidden-threading": P("load = __import__\nt = load('threading')\nprint(t.main_thread().native_id == load('os').getpid(), t.enumerate()[0].name)"),
    "hidden-logging": P("load = __import__\nprint(0 <= load('logging').makeLogRecord({}).relativeCreated < 60000)"),
    "hidden-warning": P("load = __import__\nw = load('warnings')\nw.warn('x')\nprint(w.filters)"),
    "own-module": P("import helper\nprint(helper.f(), helper.__file__, helper.__name__)", files={"helper.py": "def f(): return 7\n"}),
    "own-package": P("from pkg.sub import x\nimport pkg\nprint(x, pkg.__path__)", files={"pkg/__init__.py": "", "pkg/sub.py": "from . import __name__ as n\nx = n\n"}),
    "shadow": P("import random\nprint(random.who)", files={"random.py": "who = 'mine'\n"}),
    "shadow-later": P("open('json.py', 'w').write('who = 3')\nimport json\nprint(json.who)"),
    "shadow-below": P("import tempfile", files={"random.py": "raise SystemExit('mine')\n"}),
    "import-code": P("print(__name__)\nimport code\nprint(code.__file__)"),
    "import-pdb": P("print(__name__)\nimport pdb\nprint(pdb.code.__file__)"),
    "import-ipython": P("print(__name__)\nimport IPython\nprint(IPython.__name__)"),
    "import-code-anew": P("import random, code\nprint(random.who, code.__file__)", files={"random.py": "who = 'mine'\n"}),
    "import-code-later": P("open('x.py', 'w').write('who = 3')\nimport x, code\nprint(x.who, code.__file__)"),
    "find-code": P("import importlib, importlib.util, sys\nprint(importlib.util.find_spec('code').origin, importlib.import_module('code').__file__)\n"
                   "importlib.invalidate_caches()\ndel sys.modules['code']\nimport code\nprint(code.__file__)"),
    "own-code-package": P("import code, pdb\nprint(code.__file__)", files={"code/__init__.py": "class InteractiveConsole: pass\n"}),
    "code-of-package": P("import pkg.code\nfrom pkg import code as a\nimport code as b\nprint(pkg.code.who, a.who, b.__file__)", files={"pkg/code.py": "who = 'mine'\n"}),
    "breakpoint": P("x = 20\nbreakpoint()\nprint('on')", stdin=b"p x + 1\nc\n"),
    "pytest-main": P("import pytest, sys\nprint(__name__)\ndef test_a(): assert 1 == 1\nif __name__ == '__main__':\n    sys.exit(pytest.main(['-qq', '-p', 'no:cacheprovider', '--capture=no', __file__]) + 3)"),
    "traceback-code": P("import code\ncode.interact(1, 2, 3, 4, 5, 6)"),
    "importers": P("import sys, string\nprint(sys.path_importer_cache['/sandbox'], [p for p in sys.path_importer_cache if 'atoll' in p])"),
    "posix-environ": P("import os\nos.system('echo x$PYTHONPATH')\nprint(os.getenv('PYTHONPATH'))"),
    "environ": P("import os\nprint(sorted(os.environ.items()))\nos.environ['Z'] = '1'\nos.system('echo $Z $HOME')\nprint(os.environb[b'Z'], os.getenv('LD_PRELOAD'))"),
    # ------------------------------------------------------------------- modules
    "modules": P("import sys\nprint(sorted(sys.modules), list(sys.modules)[-1])"),
    "modules-json": P("import sys\na = set(sys.modules)\nimport json\nprint(sorted(set(sys.modules) - a))"),
    "accident-urllib": P("import urllib\nprint(urllib.parse)"),
    "accident-concurrent": P("import concurrent\nprint(concurrent.futures)"),
    "accident-collections": P("import collections\nprint(collections.abc)"),
    "accident-xml": P("import xml\nprint(xml.dom)"),
    "submodule": P("import urllib.parse, os.path, collections.abc, concurrent.futures\nprint(urllib.parse.quote('a b'), concurrent.futures.ThreadPoolExecutor)"),
    "no-module": P("import nothing_there"),
    "no-submodule": P("import json.nothing"),
    "no-name": P("from math import nothing"),
    "failing-module": P("import helper", files={"helper.py": "def f():\n    return 1 / 0\nf()\n"}),
    "syntax-in-module": P("import helper", files={"helper.py": "def f(:\n"}),
    "circular": P("import a", files={"a.py": "import b\nx = 1\n", "b.py": "from a import x\n"}),
    "reload": P("import importlib, json\nprint(importlib.reload(json) is json)"),
    "delete-and-import": P("import sys, json\nold = json\ndel sys.modules['json']\nimport json\nprint(json is old)"),
    "meta-path": P("import sys\nprint([getattr(x, '__name__', type(x).__name__) for x in sys.meta_path], len(sys.path_hooks))"),
    "find-spec": P("import importlib.util\nprint(importlib.util.find_spec('json').origin, importlib.util.find_spec('nope'))"),
    "import-hook": P("import sys\nclass F:\n    def find_spec(self, name, path, target=None):\n        print('asked', name)\nsys.meta_path.insert(0, F())\nimport colorsys, helper", files={"helper.py": ""}),
    # ------------------------------------------------------------------- streams
    "streams": P("""import sys
for s in (sys.stdin, sys.stdout, sys.stderr):
    print(s, s.name, s.mode, s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.seekable(), s.isatty(), s.fileno())
    print(s.buffer, s.buffer.raw, s.buffer.raw.mode, s.buffer.raw.closefd, s.buffer.raw.name, s.__dict__)
print(sys.stdout is sys.__stdout__, sys.stdin is sys.__stdin__, sys.stderr is sys.__stderr__)"""),
    "streams-input": P("import sys\nprint(sys.stdin.seekable(), sys.stdin.buffer.raw.seekable(), sys.stdin, repr(sys.stdin.read()))", stdin=b"a\r\nb\n"),
    "input": P("print(input('name? '), input(), repr(input()))", stdin="ä\nb\r\n\n".encode()),
    "input-eof": P("input()"),
    "input-lines": P("import sys\nfor line in sys.stdin: print(repr(line))\nprint(sys.stdin.read())", stdin=b"1\n2\n3"),
    "input-binary": P("import sys\nprint(sys.stdin.buffer.read())", stdin=bytes(range(256))),
    "input-bad-utf8": P("print(ascii(input()))", stdin=b"a\xff\n"),
    "no-input": P("import sys\nprint(repr(sys.stdin.read()), sys.stdin.buffer.read(1))"),
    "output-binary": P("import sys\nsys.stdout.buffer.write(b'\\x00\\xff\\n')\nsys.stdout.flush()\nsys.stderr.buffer.write(b'e\\n')"),
    "output-surrogate": P("print('a\\udcffb')"),
    "output-bad": P("print('\\ud800')"),
    "output-large": P("for i in range(20000): print(i, 'x' * 20)"),
    "output-order": P("import os, sys\nprint('1')\nos.write(1, b'2\\n')\nsys.stderr.write('e1')\nos.write(2, b'e2\\n')"),
    "output-no-newline": P("print('x', end='')"),
    "output-of-c": P("import ctypes, os\nprint('1', flush=True)\nctypes.CDLL(None).printf(b'2\\n')\nif os.fork() == 0: raise SystemExit(0)\nos.wait()"),
    "output-of-fortran": P("from scipy.optimize import minimize, rosen\nprint(minimize(rosen, [1.3, 0.7], method='L-BFGS-B', options={'iprint': 1, 'maxiter': 2}).nit, flush=True)"),
    "close-stdout": P("import sys\nprint('a')\nsys.stdout.close()"),
    "close-fd1": P("import os\nprint('a')\nos.close(1)"),
    "stdout-replaced": P("import sys, io\nprint('real')\nsys.stdout = io.StringIO()\nprint('hidden')"),
    "stdout-file": P("import sys\nsys.stdout = open('out.txt', 'w')\nprint('into a file')"),
    "stdout-none": P("import sys\nsys.stdout = None\nprint('x')"),
    "stderr-none": P("import sys\nsys.stderr = None\n1/0"),
    "redirect": P("import contextlib, io\nb = io.StringIO()\nwith contextlib.redirect_stdout(b): print('x')\nprint(repr(b.getvalue()))"),
    "reconfigure": P("import sys\nsys.stdout.reconfigure(encoding='latin-1', errors='replace')\nprint('\\xe4\\u1234')"),
    # ------------------------------------------------------------------- exceptions and exit
    "traceback": P("def f():\n    g()\ndef g():\n    raise ValueError('bad')\nf()"),
    "traceback-chained": P("try:\n    {}['x']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e"),
    "traceback-context": P("try:\n    1/0\nexcept ZeroDivisionError:\n    int('x')"),
    "traceback-group": P("raise ExceptionGroup('g', [ValueError(1), TypeError('t')])"),
    "traceback-notes": P("e = ValueError('v')\ne.add_note('a note')\nraise e"),
    "traceback-long-line": P("x = {'a': {'b': None}}\nprint(x['a']['b']['c']['d'])"),
    "traceback-stdlib": P("import json\njson.loads('{')"),
    "traceback-module": P("import traceback\ndef f():\n    traceback.print_stack()\n    try: 1/0\n    except Exception: traceback.print_exc()\nf()"),
    "frames": P("import sys, inspect\nprint(sys._getframe().f_back, len(inspect.stack()), inspect.stack()[0].filename)\ntry: sys._getframe(1)\nexcept ValueError as e: print(e)"),
    "name-error": P("prnt('x')"),
    "attribute-error": P("import sys\nsys.stdoot"),
    "recursion": P("def f(n):\n    return f(n + 1)\nf(0)"),
    "recursion-depth": P("import sys\nn = 0\ndef f():\n    global n\n    n += 1\n    f()\ntry: f()\nexcept RecursionError as e: print(n, e)\nprint(sys.getrecursionlimit())\nsys.setrecursionlimit(3000)\nn = 0\ntry: f()\nexcept RecursionError: print(n)"),
    "syntax-error": P("x = 1\nif x\n    print(2)"),
    "syntax-error-late": P("print('never')\nreturn 1"),
    "syntax-error-eof": P("print((1, 2"),
    "syntax-error-quote": P("x = '''abc\n"),
    "indentation-error": P("def f():\nprint(1)"),
    "tab-error": P("if 1:\n\tx = 1\n        y = 2\n"),
    "syntax-warning": P("x = 1\nprint(x is 1)\nassert (x, 'always')"),
    "warning-and-error": P("x = 1\nx is 1\nbreak"),
    "null-byte": P("print(1)\n\0\n"),
    "bad-utf8": P(b"# \xff\nprint(1)\n"),
    "bom": P(b"\xef\xbb\xbfprint('bom', '\xc3\xa4')\n"),
    "cookie": P(b"# -*- coding: latin-1 -*-\nprint('\xe4')\n"),
    "bad-cookie": P("# -*- coding: nonsense -*-\nprint(1)\n"),
    "crlf": P(b"x = '''a\r\nb'''\r\nprint(repr(x))\r\n"),
    "empty": P(""),
    "only-comment": P("# nothing"),
    "exit-0": P("import sys\nsys.exit()"),
    "exit-3": P("import sys\nprint('x')\nsys.exit(3)"),
    "exit-text": P("import sys\nsys.exit('a message')"),
    "exit-negative": P("import sys\nsys.exit(-1)"),
    "exit-300": P("raise SystemExit(300)"),
    "exit-huge": P("raise SystemExit(1 << 70)"),
    "exit-true": P("raise SystemExit(True)"),
    "exit-tuple": P("raise SystemExit((1, 'x'))"),
    "exit-builtin": P("exit(4)"),
    "exit-nested": P("def f():\n    try: raise SystemExit(5)\n    finally: print('cleanup')\nf()"),
    "exit-own": P("class E(SystemExit): pass\nraise E(6)"),
    "os-exit": P("import os\nprint('lost')\nos._exit(7)"),
    "abort": P("import os\nos.abort()"),
    "kill-self": P("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)"),
    "keyboard-interrupt": P("raise KeyboardInterrupt"),
    "sigint": P("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('never')"),
    "segfault": P("import ctypes\nctypes.string_at(0)"),
    "exec-self": P("import os, sys\nif len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])\nprint(sys.argv)"),
    "excepthook": P("import sys\ndef hook(t, v, tb): print('hook', t.__name__, v, tb.tb_lineno, tb.tb_next)\nsys.excepthook = hook\n1/0"),
    "excepthook-fails": P("import sys\ndef hook(t, v, tb): raise TypeError('in hook')\nsys.excepthook = hook\n1/0"),
    "excepthook-exits": P("import sys\ndef hook(t, v, tb): sys.exit(9)\nsys.excepthook = hook\n1/0"),
    "unraisable": P("class A:\n    def __del__(self): 1/0\na = A()\ndel a\nprint('on')"),
    "unraisablehook": P("import sys\nsys.unraisablehook = lambda u: print('mine', u.exc_type.__name__)\nclass A:\n    def __del__(self): 1/0\na = A()\ndel a\nraise ValueError"),
    "last-value": P("import sys, atexit\natexit.register(lambda: print(sys.last_type, sys.last_value))\n1/0"),
    "memory-error": P("x = 'a' * (1 << 60)"),
    "settrace": P("import sys\ndef t(f, e, a):\n    if '__del__' not in f.f_code.co_name: print(e, f.f_code.co_name, f.f_lineno)\n    return t\nsys.settrace(t)\ndef g():\n    return 1\ng()"),
    "setprofile": P("import sys\ndef t(f, e, a): sys.stderr.write(f'{e} {f.f_code.co_name}\\n')\nsys.setprofile(t)\nabs(-1)\ndef g(): pass\ng()"),
    # ------------------------------------------------------------------- the end
    "atexit": P("import atexit\n@atexit.register\ndef f(): print('first in, last out')\natexit.register(print, 'x', 1, sep='-')"),
    "atexit-fails": P("import atexit\natexit.register(lambda: 1/0)\natexit.register(print, 'other')"),
    "atexit-exit": P("import atexit, sys\natexit.register(sys.exit, 3)\nprint('x')"),
    "atexit-run-early": P("import atexit\natexit.register(print, 'x')\natexit._run_exitfuncs()\nprint('still here')\n1/0"),
    "atexit-cleared": P("import atexit\natexit.register(print, 'x')\natexit._clear()\nprint('end')\nraise SystemExit(3)"),
    "del-global": P("class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print('del', self.n)\na = A(1)\nb = A(2)\n_c = A(3)\nprint('end')"),
    "del-with-function": P("class A:\n    def __del__(self): print('del', f())\ndef f(): return 'called'\na = A()"),
    "del-cycle": P("class A:\n    def __del__(self): print('del cycle')\na = A()\na.me = a\ndel a\nprint('end')"),
    "del-cycle-old": P("import gc\nclass A:\n    def __del__(self): print('del', len(junk))\na = A()\na.me = a\njunk = [[] for _ in range(100000)]\ngc.collect()\nprint('end')"),
    "generator-cycle": P("def g():\n    try: yield\n    finally: print('closed')\nx = [g()]\nx.append(x)\nnext(x[0])\nimport gc\ngc.collect()\ndef f(): return x\nprint('end')"),
    "del-in-module": P("import helper", files={"helper.py": "class A:\n    def __del__(self): print('del in helper')\na = A()\n"}),
    "del-fails": P("class A:\n    def __del__(self): raise ValueError('late')\na = A()"),
    "del-after-error": P("class A:\n    def __del__(self): print('del')\ndef f():\n    a = A()\n    1/0\nf()"),
    "del-imports": P("class A:\n    def __del__(self):\n        import colorsys\na = A()"),
    "del-in-builtins": P("import builtins\nclass A:\n    def __del__(self): print('gone')\nbuiltins.keep = A()\nprint('end')"),
    "taken-apart": P("import builtins, os, sys\nprint('x')\nos._exit = os.getpid = os.write = os.listdir = None\nfor n in ('len', 'getattr', 'isinstance', 'list', 'BaseException', 'dict'): delattr(builtins, n)\ndel sys.__stdout__, sys.__stderr__\nraise SystemExit(3)"),
    "builtins-cleared": P("import builtins\nprint('x')\nbuiltins.__dict__.clear()"),
    "modules-cleared": P("import sys, json\nprint('x')\nsys.modules.clear()\njson.dumps([1])"),
    "modules-replaced": P("import sys\nsys.modules = {}\nimport json\nprint(json.dumps([1]), sorted(sys.modules))"),
    "unclosed-file": P("f = open('data.txt', 'w')\nf.write('not lost')"),
    "unclosed-in-function": P("def f():\n    global g\n    g = open('data.txt', 'w')\n    g.write('x' * 10000)\nf()\n1/0"),
    "generator-finally": P("def g():\n    try: yield 1\n    finally: print('closed')\nx = g()\nnext(x)"),
    "weakref-finalize": P("import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\nprint('end')"),
    "tempdir": P("import tempfile, os\nd = tempfile.TemporaryDirectory(dir='.')\nprint(os.path.isdir(d.name))"),
    "threads-joined": P("import threading, time\ndef f():\n    time.sleep(0.5)\n    print('thread')\nthreading.Thread(target=f).start()\nprint('main')"),
    "threads-daemon": P("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('main')"),
    "threads-fail": P("import threading\nt = threading.Thread(target=lambda: 1/0, name='T')\nt.start()\nt.join()\nprint('main')"),
    "threads-exit": P("import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,))\nt.start()\nt.join()\nprint('main')"),
    "thread-state": P("import threading, os, signal\nm = threading.main_thread()\nprint(m.name, m.native_id == os.getpid(), threading.current_thread() is m, threading.active_count(), m.ident == threading.get_ident(), threading.enumerate())"),
    "executor": P("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as e: print(list(e.map(abs, [-1, -2])))"),
    "executor-left": P("from concurrent.futures import ThreadPoolExecutor\nimport time\ne = ThreadPoolExecutor(2)\ne.submit(lambda: (time.sleep(0.05), print('done')))"),
    # ------------------------------------------------------------------- processes and signals
    "fork": P("import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    print('parent')\nelse:\n    print('child')"),
    "fork-child-fails": P("import os\nif os.fork() == 0: 1/0\nprint(os.wait()[1])"),
    "fork-child-exits": P("import os, sys\nif os.fork() == 0: sys.exit(9)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"),
    "fork-parent-first": P("import os, time\nif os.fork() == 0:\n    time.sleep(0.05)\n    os._exit(0)\nprint('parent')\nraise SystemExit(4)"),
    "subprocess": P("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, __name__)', 'x'], capture_output=True, text=True))"),
    "system": P("import os\nprint(os.system('echo shell; exit 3'), os.popen('echo popen').read())"),
    "multiprocessing-fork": P("import multiprocessing as mp\ndef f(x): return x * x\nif __name__ == '__main__':\n    with mp.get_context('fork').Pool(2) as p: print(p.map(f, range(4)))"),
    "multiprocessing-spawn": P("import multiprocessing as mp\ndef f(q): q.put(__name__)\nif __name__ == '__main__':\n    c = mp.get_context('spawn')\n    q = c.Queue()\n    p = c.Process(target=f, args=(q,))\n    p.start()\n    print(q.get())\n    p.join()\n    print(p.exitcode)"),
    "asyncio": P("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return await asyncio.to_thread(lambda: 7)\nprint(asyncio.run(f()))"),
    "asyncio-left": P("import asyncio\nasync def f(): pass\nf()"),
    "signals": P("import signal\nprint([(s, signal.getsignal(s)) for s in sorted(signal.valid_signals()) if signal.getsignal(s) not in (signal.SIG_DFL,)], signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL))"),
    "alarm": P("import signal, time\ndef h(s, f): print('alarm', s, f.f_lineno)\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.02)\nsignal.pause()\nprint('on')"),
    "sigpipe": P("import os, sys\nr, w = os.pipe()\nos.close(r)\ntry: os.write(w, b'x')\nexcept BrokenPipeError as e: print(e)"),
    "pipe-closed": P("import os\nr, w = os.pipe()\nos.close(r)\nos.dup2(w, 1)\nprint('x')"),
    "process": P("import os\nprint(os.getcwd(), oct(os.umask(0)), os.getpid() == os.getpgid(0), os.getppid() == 1)\nopen('f', 'w').close()\nprint(oct(os.stat('f').st_mode))"),
    "descriptors": P("import os\nfd = os.open('/dev/null', os.O_RDONLY)\nprint(fd, [i for i in range(64) if os.path.exists(f'/proc/self/fd/{i}')])"),
    "closerange": P("import os\nprint('x', flush=True)\nos.closerange(3, 1000)\nraise SystemExit(5)"),
    # ------------------------------------------------------------------- state of the library
    "warnings": P("import warnings\nprint(warnings.filters, warnings.onceregistry)\nwarnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)\ndef f(): warnings.warn('deep', stacklevel=2)\nf()"),
    "logging": P("import logging\nprint(logging.root.handlers, logging.root.level)\nlogging.warning('w')\nlogging.getLogger('x').error('e')\nlogging.info('i')"),
    "logging-stack": P("import logging\nlogging.basicConfig(format='%(filename)s:%(lineno)d %(funcName)s %(message)s' )\nlogging.error('x', stack_info=True)"),
    "gc": P("import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks, gc.garbage)\nclass A: pass\na = A(); a.a = a\ndel a\ngc.collect()\nprint(gc.garbage)"),
    "locale": P("import locale, time\nprint(locale.getlocale(), locale.setlocale(locale.LC_ALL), time.tzname, locale.getpreferredencoding())"),
    "decimal": P("import decimal\nprint(decimal.getcontext(), decimal.Decimal(1) / 3)"),
    "faulthandler": P("import faulthandler, sys\nprint(faulthandler.is_enabled(), sys.gettrace(), sys.getprofile(), sys.getswitchinterval())"),
    "random-seeded": P("import random\nrandom.seed(1)\nprint(random.random(), random.randint(1, 100), random.sample(range(100), 3))"),
    "tempfile": P("import tempfile\nprint(tempfile.gettempdir(), tempfile.tempdir, tempfile.gettempprefix())"),
    "platform": P("import platform, socket\nprint(platform.node() == socket.gethostname(), platform.python_version(), platform.system())"),
    "linecache": P("import linecache\nprint(list(linecache.cache), linecache.getline(__file__, 1))"),
    "re-debug": P("import re\nre.purge()\nprint(re.findall(r'\\w+', 'a bc'), re.compile('x'))"),
    "json": P("import json\nprint(json.dumps({'a': [1, 2.5, None]}, indent=2), json.loads('[1]'))"),
    "datetime": P("import datetime\nprint(datetime.date(2024, 2, 29) + datetime.timedelta(365), datetime.datetime(2024, 1, 1).strftime('%A'))"),
    "inspect-source": P("import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.getmodule(f))"),
    "unittest": P("import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\nimport re, sys, io\nr = unittest.main(exit=False, testRunner=unittest.TextTestRunner(stream=io.StringIO())).result\nprint(len(r.failures), r.failures[0][1])"),
    "doctest": P("def f():\n    '''\n    >>> f()\n    2\n    '''\n    return 1\nimport doctest\nprint(doctest.testmod())"),
    "runpy": P("import runpy\nprint(runpy.run_path('other.py')['x'])", files={"other.py": "x = __name__\n"}),
    "exec-eval": P("exec('print(__name__, len(locals()) > 3)')\nprint(eval('__file__'), compile('1', 'x', 'eval'))"),
    "contextvars": P("import contextvars\nprint(list(contextvars.copy_context()))"),
    "interactive": P("import sys\nprint(hasattr(sys, 'ps1'), hasattr(sys, 'last_value'), sys.displayhook, sys.excepthook, sys.breakpointhook)"),
    "typing-generic": P("from typing import Generic, TypeVar, NamedTuple\nT = TypeVar('T')\nclass A(Generic[T]): pass\nclass N(NamedTuple):\n    x: int\nprint(A[int], N(1), T.__module__)"),
    "enum-pickle": P("import enum, pickle, copy\nclass C(enum.Enum):\n    A = 1\nprint(pickle.loads(pickle.dumps(C.A)), copy.deepcopy({C.A: [1]}))"),
    "sqlite": P("import sqlite3\nc = sqlite3.connect(':memory:')\nprint(c.execute('select 1+1').fetchall())"),
    "hashlib": P("import hashlib, base64, zlib\nprint(hashlib.sha256(b'x').hexdigest(), base64.b64encode(b'x'), zlib.crc32(b'x'))"),
    # ------------------------------------------------------------------- numpy, pandas, matplotlib
    "numpy": P("import numpy as np\na = np.arange(12.).reshape(3, 4)\nprint(a @ a.T, a.mean(), np.linalg.det(a @ a.T + np.eye(3)))", tier="numpy"),
    "numpy-seeded": P("import numpy as np\nnp.random.seed(1)\nprint(np.random.rand(3), np.random.default_rng(2).normal(size=2), np.random.get_state()[2])", tier="numpy"),
    "numpy-state": P("import numpy as np, warnings, sys\nprint(np.geterr(), np.get_printoptions(), warnings.filters, np.random.get_state()[2:], sorted(sys.modules))", tier="numpy"),
    "numpy-warning": P("import numpy as np\nprint(np.array([1.]) / 0, np.float64(1) / 0)", tier="numpy"),
    "numpy-error": P("import numpy as np\nnp.ones(2) @ np.ones(3)", tier="numpy"),
    "numpy-file": P("import numpy as np\nnp.save('a.npy', np.arange(3))\nprint(np.load('a.npy'))", tier="numpy"),
    "pandas": P("import pandas as pd\nd = pd.DataFrame({'a': [1, 2, 3], 'b': list('xyx')})\nprint(d, d.groupby('b').sum(), d.describe(), sep='\\n')\nd.to_csv('d.csv')\nprint(pd.read_csv('d.csv'))", tier="pandas"),
    "pandas-logging": P("import pandas, logging, logging.handlers\nh = logging.handlers.MemoryHandler(100, target=logging.StreamHandler())\nlogging.getLogger().addHandler(h)\nlogging.warning('kept until the end')", tier="pandas"),
    "pandas-modules": P("import sys, pandas\nprint(sorted(sys.modules))", tier="pandas"),
    "pandas-error": P("import pandas as pd\npd.DataFrame({'a': [1]})['b']", tier="pandas"),
    "pandas-state": P("import pandas as pd, warnings\nprint(warnings.filters, pd.get_option('display.width'))\npd.Series([], dtype=float).mean()", tier="pandas"),
    "figure": P("import matplotlib\nmatplotlib.rcParams['svg.hashsalt'] = 'x'\nimport matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('t')\nplt.savefig('f.png', metadata={'Software': None})\nprint(matplotlib.get_backend(), plt.get_fignums())", tier="matplotlib"),
    "figure-accident": P("import matplotlib\nprint(matplotlib.pyplot)", tier="matplotlib"),
}

# What is never the same twice: addresses, and so the numbers of threads.
VARIES = [(re.compile(r"0x[0-9a-f]{6,}"), "0x…"), (re.compile(r"(?<=, started )\d+"), "…")]


def plain(text):
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return text


# ---- runner ----

SEEN = ("status", "exit_code", "signal", "stdout", "stderr")
WARM = "import os\nprint(os.path.exists('/proc/self/fd/100'))\n"  # only a forked program has that descriptor
TIERS = {None: "", "stock": "import json\n", "numpy": "import numpy\n", "pandas": "import pandas\n", "matplotlib": "import matplotlib\n"}


class Pair(resident.Pair):
    """The same request cold and warm."""

    def __init__(self, atoll, socket):
        super().__init__(atoll, socket)
        self.ready = set()

    def until_warm(self, tier):
        end = time.monotonic() + 120
        while tier not in self.ready:
            # A cold program leaves before it imports anything: pandas takes a second of CPU time.
            if self.warm.python(resident.GUARD + TIERS[tier] + WARM)["stdout"] == "True\n":
                self.ready.add(tier)
            assert time.monotonic() < end, f"{tier} does not get warm"
            time.sleep(0.1)


@pytest.fixture(scope="module", params=MODES)
def pair(request, stage):
    it = Pair(Atoll(request.param, stage), stage.scratch(request.param, "pool") / "pool.sock")
    try:
        it.until_warm(None)
        it.until_warm("stock")
        yield it
    finally:
        it.end()


@pytest.fixture
def leaks():
    """The pool of this module keeps sandboxes on purpose."""


def outcome(atoll, p):
    """What the run leaves: (result, files)."""
    place = atoll.stage.scratch(atoll.mode, "run")
    try:
        (place / "main.py").write_bytes(p.code)
        for name, text in p.files.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(text)
        tops = sorted({name.split("/")[0] for name in p.files})
        words = ["-l", "python", *(f"--file={top}={place / top}" for top in tops), "--output-dir", place / "made", place / "main.py"]
        result = atoll.result(words + (["--", *p.args] if p.args else []), input=p.stdin or b"",
                              **({} if p.stdin else {"stdin": subprocess.DEVNULL}), timeout=60)
        made = {str(path.relative_to(place)): path.read_bytes() for path in (place / "made").rglob("*") if path.is_file()}
    finally:
        shutil.rmtree(place)
    seen = {key: result.get(key) for key in SEEN}
    seen["stdout"], seen["stderr"] = plain(seen["stdout"]), plain(seen["stderr"])
    return seen, made


def assert_same(pair, name):
    pair.until_warm(PROGRAMS[name].tier)
    cold, warm = (outcome(front, PROGRAMS[name]) for front in (pair.cold, pair.warm))
    assert warm == cold


@pytest.mark.matrix(3)
@pytest.mark.parametrize("pair", MODES[:1], indirect=True)
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_tells_it_from_cold(pair, name):
    assert_same(pair, name)


STANDARD = "/usr/lib/python3.11/code.py\n"
NO_MODULE = {"import-code": "__main__\n" + STANDARD, "import-pdb": "__main__\n" + STANDARD, "import-ipython": "__main__\nIPython\n",
             "import-code-anew": "mine " + STANDARD, "import-code-later": "3 " + STANDARD,
             "find-code": STANDARD.strip() + " " + STANDARD + STANDARD, "own-code-package": "/sandbox/code/__init__.py\n",
             "code-of-package": "mine mine " + STANDARD, "posix-environ": "x\nNone\n"}


@pytest.mark.parametrize("pair", MODES[:1], indirect=True)
@pytest.mark.parametrize("name", NO_MODULE)
def test_the_program_is_no_module(pair, name):
    """What debuggers and notebooks need is Python's own. That it is so cold, too, test_nothing_tells_it_from_cold shows."""
    seen, _ = outcome(pair.warm, PROGRAMS[name])
    assert (seen["stdout"], seen["status"]) == (NO_MODULE[name], "success"), seen


CHILDREN = """import subprocess, sys
def child(*words):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    return done.stdout + done.stderr
print(child('-m', 'pdb', '--help').split()[:2], child('-c', 'import code; print(code.__file__)'), child('-m', 'pytest', '--version').split()[:1],
      child('-c', 'import IPython; print(IPython.__name__)'))
"""


@pytest.mark.parametrize("pair", MODES[:1], indirect=True)
def test_children_find_their_modules(pair):
    """With the program called as one of Python's own modules they ran it again, and again."""
    for front in (pair.cold, pair.warm):
        assert front.python(CHILDREN)["stdout"] == f"['usage:', 'pdb.py'] {STANDARD} ['pytest'] IPython\n\n"


NAMED = "import sys\nprint(__file__, sys.argv[0], sys.path[0], sorted(__import__('os').listdir('.')))\nimport json, code\nprint(json.__file__, code.__file__)\n1 / 0"
FOUND = {"prog.py": ("json/__init__.py", "code.py"), "grün 2.py": ("json/__init__.py", "code.py"), "script": ("json/__init__.py", "code.py"),
         "json.py": ("/sandbox/json.py", "code.py"), "code.py": ("json/__init__.py", "/sandbox/code.py")}


@pytest.mark.parametrize("name", [*FOUND, "-x.py", "a\nb.py", ".atoll-x.py", 'a".py'])
def test_a_file_keeps_its_name(pair, name):
    """Tracebacks people recognise; one that is called as a module is shadows it, as with python itself."""
    kept = name if name in FOUND else "main.py"
    modules = [found if found[0] == "/" else f"/usr/lib/python3.11/{found}" for found in FOUND.get(name, FOUND["prog.py"])]
    head = f"/sandbox/{kept} /sandbox/{kept} /sandbox ['{kept}']\n"
    for front in (pair.cold, pair.warm):
        place = front.stage.scratch(front.mode, "named")
        try:
            (place / name).write_text(NAMED)
            result = front.result(["-l", "python", place / name])
        finally:
            shutil.rmtree(place)
        assert result["stdout"].startswith(head) and result["stdout"].endswith(" ".join(modules) + "\n"), result
        assert f'File "/sandbox/{kept}", line 5, in <module>\n' in result["stderr"]
        assert result["error"] == {"type": "ZeroDivisionError", "message": "division by zero", "file": f"/sandbox/{kept}", "line": 5}


def test_another_program_beside_one_of_that_name(pair):
    request = json.dumps({"language": "python", "entry": "start.py", "files": {"start.py": "import main\nprint(main.who)", "main.py": "who = 'mine'"}})
    for front in (pair.cold, pair.warm):
        assert front.result(["--request", "-"], input=request)["stdout"] == "mine\n"


def test_a_path_of_the_callers(pair):
    code = "import os, sys, code\nprint(sys.path[:3], os.environ['PYTHONPATH'], code.__file__)\nos.system('echo $PYTHONPATH')"
    result = pair.cold.python(code, options=["--env", "PYTHONPATH=/a:/b"])
    assert result["stdout"] == f"/a:/b\n['/sandbox', '/a', '/b'] /a:/b {STANDARD}"
    assert pair.cold.python("import sys\nprint(sys.path[0])", options=["--env", "PYTHONPATH="])["stdout"] == "/sandbox\n"


def test_programs_are_warm(pair):
    """Otherwise this file compares cold runs with cold runs."""
    for tier, head in TIERS.items():
        if pair.atoll.rootless and tier in ("pandas", "matplotlib"):
            continue  # made as numpy's is, and for no program of an ordinary user's below
        pair.until_warm(tier)
        resident.wait_until(lambda: pair.warm.python(head + WARM)["stdout"] == "True\n", 25, "only one was")
    assert pair.cold.python(WARM)["stdout"] == "False\n"


NUMBERS = """
import os, random, secrets, ssl, tempfile, uuid
import numpy as np
print(random.random(), random.Random().random(), np.random.rand(), np.random.default_rng().random(), np.random.bytes(4), uuid.uuid4(),
      secrets.token_hex(8), ssl.RAND_bytes(8), os.urandom(8), next(tempfile._get_candidate_names()), sep="\\n")
"""


def test_random_numbers_differ(pair):
    pair.until_warm("numpy")
    seen = [pair.warm.python(NUMBERS)["stdout"].splitlines() for _ in range(6)]
    for column in zip(*seen):
        assert len(set(column)) == len(seen), column


def test_nothing_of_a_program_is_left(pair):
    leave = "import builtins, json, os, sys\nbuiltins.left = json.left = os.left = 1\nos.environ['LEFT'] = 'x'\nopen('/tmp/left', 'w'); open('left', 'w')"
    look = ("import builtins, json, os\n"
            "print([hasattr(m, 'left') for m in (builtins, json, os)], os.environ.get('LEFT'), os.listdir('/tmp'), os.listdir('.'))")
    clean = pair.cold.python(look)["stdout"]
    for _ in range(3):
        assert pair.warm.python(leave)["status"] == "success"
        assert pair.warm.python(look)["stdout"] == clean


def test_another_entry_and_its_neighbours(pair):
    request = json.dumps({"language": "python", "entry": "src/main.py",
                          "files": {"src/main.py": "import sys, lib.b\nprint(sys.path[0], sys.argv, __file__)\n1/0",
                                    "src/lib/b.py": "print(__name__, __file__)"}})
    cold, warm = ({key: front.result(["--request", "-"], input=request).get(key) for key in SEEN} for front in (pair.cold, pair.warm))
    assert warm == cold and "/sandbox/src" in warm["stdout"]


STREAMS = """
import sys
for stream in sys.stdin, sys.stdout, sys.stderr:
    own = stream.buffer if stream is not sys.stdin else stream.buffer.raw
    print(repr(stream), stream.mode, type(stream.buffer).__name__, stream.line_buffering, stream.write_through, own.name, own.mode, own.closefd,
          stream is getattr(sys, "__%s__" % stream.name.strip("<>")))
print(sys.stdin.read(), input.__name__, file=sys.stderr)
"""


@pytest.mark.parametrize("value", ["1", "", "0", "yes"])
def test_unbuffered(pair, value):
    """Output leaves at once when the request says so, and the program is warm nevertheless."""
    for word in (None, "in\n"):
        options = {"options": ["--env", "PYTHONUNBUFFERED=" + value], "input": word or ""}
        cold, warm = (front.python(STREAMS, **options) for front in (pair.cold, pair.warm))
        assert [warm[key] for key in SEEN] == [cold[key] for key in SEEN]
    code = "import os\nprint('a', 'b', end='')\nos._exit(0)"
    cold, warm = (front.python(code, options=["--env", "PYTHONUNBUFFERED=" + value])["stdout"] for front in (pair.cold, pair.warm))
    assert warm == cold == ("" if value in ("", "0") else "a b")
    said = pair.warm.python(WARM, options=["--env", "PYTHONUNBUFFERED=" + value])["stdout"]
    assert said == ("True\n" if value == "1" else "False\n")


@pytest.mark.parametrize("variable", ["PYTHONPATH=/sandbox/x", "PYTHONOPTIMIZE=1", "PYTHONHASHSEED=1", "PYTHONUNBUFFERED=1", "PYTHONWARNINGS=error",
                                      "TZ=Asia/Tokyo", "LC_ALL=C", "HOME=/tmp", "GREETING=good day"])
def test_variables(pair, variable):
    code = "import os, sys, time, warnings\nprint(sys.path, sys.flags, time.tzname, sys.stdout.encoding, sys.stdout.errors, warnings.filters, sorted(os.environ.items()))"
    if "HASHSEED" in variable:
        code = "print(hash('x'))"
    cold, warm = (front.python(code, options=["--env", variable]) for front in (pair.cold, pair.warm))
    assert [warm[key] for key in SEEN] == [cold[key] for key in SEEN]


@pytest.fixture
def any_module(stage, pair):
    """Options of a run whose policy lets it name any module."""
    text = (stage.data / "policies" / "default.yaml").read_text()
    assert "preload: tiers" in text
    path = pair.path.parent / "any.yaml"
    path.write_text(text.replace("preload: tiers", "preload: any"))
    path.chmod(0o644)
    return ["--policy", str(path), "--preload"]


def test_modules_that_the_caller_names(pair, any_module):
    """--preload: another zygote, for programs whose imports cannot be told from their source."""
    code = "m = __import__('wave' + '')\nimport os\nprint(m.__name__, os.path.exists('/proc/self/fd/100'))"
    end = time.monotonic() + 90
    while (result := pair.warm.python(code, options=[*any_module, "wave"]))["stdout"] != "wave True\n":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "warnings" not in result


def test_a_module_that_is_not_there(pair, any_module):
    for _ in range(3):
        result = pair.warm.python("print(1)\nimport nothing_there", options=[*any_module, "nothing_there,wave"])
        assert result["stdout"] == "1\n" and "No module named 'nothing_there'" in result["stderr"]
        assert result["warnings"] == ["preload: Python has no module 'nothing_there': nothing was loaded ahead for it"]
        time.sleep(0.3)


def test_the_table_is_long():
    assert len(PROGRAMS) >= 150


# Programs that see their user, files, environment, streams, processes or end. The others see their interpreter only.
OF_THE_USER = """globals main-module argv path own-module own-package shadow import-code posix-environ environ modules streams
    streams-input input input-binary no-input output-binary output-large output-of-c close-stdout close-fd1 stdout-file traceback
    traceback-module syntax-error exit-3 exit-text os-exit abort kill-self sigint segfault exec-self excepthook memory-error atexit
    unclosed-file tempdir threads-joined executor fork fork-child-fails fork-parent-first subprocess system multiprocessing-fork
    multiprocessing-spawn asyncio signals alarm sigpipe process descriptors closerange logging locale faulthandler tempfile platform
    sqlite numpy numpy-file""".split()


@pytest.mark.matrix(3)
@pytest.mark.parametrize("pair", MODES[1:], indirect=True)
@pytest.mark.parametrize("name", OF_THE_USER)
def test_nothing_tells_an_ordinary_user_either(pair, name):
    assert_same(pair, name)
