# SPDX-License-Identifier: Apache-2.0
"""Node.js and Java started ahead of their programs: a warm run is told from a cold one by nothing but its times.

Every program of the tables runs twice, once with the pool switched off and once through `atoll pool`, and must give the
same standard output, standard error, exit code, signal and files. That a run was warm is told by descriptor 100, which
only such programs have.
"""
import hashlib
import re
import shutil
import tempfile
import time
import zipfile
from pathlib import Path

import pytest

import resident
from program import ROOT, Atoll

# name -> code, or a dictionary of code, files, args, stdin, env
JAVASCRIPT = {
    "empty": "",
    "hello": "console.log('hello', 1, [1, 2, {a: {b: {c: {}}}}], new Map([[1, 2]]), null, undefined, 1.5, 10n, Symbol('s'))",
    "streams": "console.log('out'); console.error('err'); process.stdout.write('no newline'); process.stderr.write('x\\n')",
    "argv": {"code": "console.log(process.argv, process.argv0, process.execArgv, process.execPath, process.title)",
             "args": ["a", "--flag", "", "two words", "é"]},
    "env": {"code": """
        const { _, ...env } = process.env;
        console.log(Object.keys(env).sort().map((k) => `${k}=${env[k]}`).join('\\n'));
        process.env.NEW = 'x'; delete process.env.HOME;
        console.log(process.env.NEW, process.env.HOME, process.env.LD_PRELOAD, 'LD_PRELOAD' in process.env);
        console.log(require('child_process').execSync('echo $NEW-$HOME-$MINE').toString())""",
            "env": {"MINE": "mine", "EMPTY": ""}},
    "module": """
        console.log(__filename, __dirname, require.main === module, module.id, module.filename, module.parent, module.loaded);
        console.log(module.paths, module.children, module.exports === exports, this === exports, typeof arguments, arguments.length);
        console.log(Object.keys(require.cache), require.resolve('fs'), require.resolve.paths('x'));
        console.log(process.mainModule === module, require('module').globalPaths)""",
    "require": {"code": "const a = require('./lib/a'); console.log(a, require('./data.json'), module.children.length);"
                        "try { require('./nope') } catch (e) { console.log(e.message, e.code, e.requireStack) }",
                "files": {"lib/a.js": "exports.name = __filename; exports.b = require('./b');",
                          "lib/b.js": "module.exports = require.main.filename + ':' + module.parent.filename;",
                          "data.json": "{\"x\": [1, 2]}"}},
    "node_modules": {"code": "console.log(require('thing'), require('thing/package.json').version)",
                     "files": {"node_modules/thing/package.json": "{\"main\": \"m.js\", \"version\": \"1.2.3\"}",
                               "node_modules/thing/m.js": "module.exports = __filename"}},
    "globals": """
        console.log(Object.getOwnPropertyNames(globalThis).sort().join(' '));
        console.log(Object.keys(globalThis).join(' '));
        console.log(typeof fs, typeof path, typeof globalThis.module, typeof globalThis.require, typeof globalThis.__filename)""",
    "process-keys": """
        console.log(Object.keys(process).join(' '));
        console.log(process.eventNames(), process.listenerCount('exit'), process._eval, process.exitCode);
        console.log(process.cwd(), process.umask(), process.getuid(), process.version === 'v' + process.versions.node)""",
    "handles": "console.log(process._getActiveHandles().length, process._getActiveRequests().length, process.getActiveResourcesInfo())",
    "stdin-sync": {"code": "console.log(require('fs').readFileSync(0, 'utf8').toUpperCase())", "stdin": "some input\n"},
    "stdin-events": {"code": "let n = 0; process.stdin.on('data', (d) => n += d.length).on('end', () => console.log(n))",
                     "stdin": "x" * 100000},
    "stdin-lines": {"code": "const rl = require('readline').createInterface({ input: process.stdin });"
                            "rl.on('line', (l) => console.log('>', l)).on('close', () => console.log('closed'))",
                    "stdin": "one\ntwo\nthree"},
    "stdin-async": {"code": "(async () => { for await (const c of process.stdin) console.log(String(c)); })()", "stdin": "abc"},
    "stdin-none": "process.stdin.on('data', () => {}).on('end', () => console.log('end'))",
    "throw": "function f() { throw new TypeError('bad thing') }\nfunction g() { f() }\n\ng()",
    "throw-async": "setTimeout(function late() { throw new RangeError('later') }, 5)",
    "throw-tick": "process.nextTick(() => { throw new Error('tick') })",
    "throw-promise": "Promise.resolve().then(() => { throw new Error('in then') })",
    "throw-string": "throw 'just text'",
    "throw-object": "throw { code: 7, nested: [1] }",
    "throw-null": "throw null",
    "throw-cause": "throw new Error('outer', { cause: new Error('inner') })",
    "throw-aggregate": "Promise.any([Promise.reject(new Error('a')), Promise.reject(new Error('b'))])",
    "throw-deep": "function f(n) { if (!n) throw new Error('deep'); f(n - 1) }\nf(30)",
    "stack": "console.log(new Error('here').stack); Error.stackTraceLimit = 50; console.log(new Error('all').stack);"
             "(() => console.trace('trace'))()",
    "stack-async": "async function a() { await null; await b() } async function b() { await null; console.log(new Error('x').stack) } a()",
    "stack-sites": "Error.prepareStackTrace = (e, s) => s.map((c) => [c.getFileName(), c.getLineNumber(), c.getFunctionName(),"
                   " c.isToplevel(), c.isNative(), c.getTypeName()].join()); console.log(new Error('x').stack)",
    "stack-immediate": "setImmediate(() => console.log(new Error('x').stack)); setTimeout(() => console.log(new Error('y').stack), 600);"
                       "process.nextTick(() => console.log(new Error('z').stack)); Promise.resolve().then(() => console.log(new Error('p').stack))",
    "overflow": "function f() { return f() + 1 } try { f() } catch (e) { console.log(e.name, e.message) } f()",
    "syntax": "let x = ;\n",
    "syntax-module": {"code": "require('./bad')", "files": {"bad.js": "function (\n"}},
    "reference": "console.log(1);\nundefinedThing.x",
    "rejection": "Promise.reject(new Error('nobody cares'))",
    "rejection-value": "Promise.reject(42)",
    "rejection-handled": "process.on('unhandledRejection', (r) => console.log('caught', r.message)); Promise.reject(new Error('r'))",
    "uncaught-handler": "process.on('uncaughtException', (e, o) => { console.log('caught', e.message, o) }); setTimeout(() => console.log('goes on'), 5); throw new Error('u')",
    "uncaught-monitor": "process.on('uncaughtExceptionMonitor', (e) => console.log('seen', e.message)); throw new Error('m')",
    "exit-code": "process.exitCode = 3; process.on('exit', (c) => console.log('exit', c))",
    "exit-call": "process.on('exit', (c) => console.log('exit', c, process.exitCode)); console.log('a'); process.exit(7); console.log('b')",
    "exit-zero": "setInterval(() => {}, 1000); setTimeout(() => process.exit(), 3)",
    "exit-handlers": "process.on('exit', () => console.log(1)); process.on('exit', () => { process.exitCode = 9; console.log(2) });"
                     "process.once('exit', () => console.log(3))",
    "exit-late": "process.on('exit', () => { setTimeout(() => console.log('never'), 0); process.nextTick(() => console.log('never'));"
                 "Promise.resolve().then(() => console.log('micro')).then(() => console.log('micro 2')); console.log('sync') })",
    "exit-late-call": "process.on('exit', () => { Promise.resolve().then(() => console.log('micro')); console.log('sync') }); process.exit(0)",
    "exit-throws": "process.on('exit', () => console.log('first')); process.on('exit', () => { throw new Error('in exit') })",
    "exit-in-exit": "process.on('exit', () => process.exit(5))",
    "exit-emit": "process.on('exit', (c) => console.log('listener', c)); process.emit('exit', 5); console.log('still here')",
    "exit-patched": "const old = process.emit; process.emit = function (...a) { if (a[0] !== 'newListener') console.log('emit', a[0]); return old.apply(this, a) };"
                    "const really = process.reallyExit; process.reallyExit = (c) => { console.log('really', c); really.call(process, c) }; setTimeout(() => process.exit(4), 2)",
    "exit-big": "console.log(process.exitCode); process.exit(300)",
    "before-exit": "let n = 0; process.on('beforeExit', (c) => { console.log('beforeExit', c, n); if (n++ < 2) setTimeout(() => console.log('more'), 1) })",
    "abort": "console.log('a'); process.abort()",
    "signal-self": "console.log('a'); process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 20000)",
    "signal-kill": "process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 20000)",
    "signal-handler": "process.on('SIGUSR2', (s, n) => { console.log(s, n); clearInterval(t) }); const t = setInterval(() => {}, 100); process.kill(process.pid, 'SIGUSR2')",
    "order": "setTimeout(() => { console.log('timeout'); setTimeout(() => console.log('later'), 0); setImmediate(() => console.log('immediate')) }, 0);"
             "process.nextTick(() => console.log('tick')); Promise.resolve().then(() => console.log('micro')); queueMicrotask(() => console.log('queued'));"
             "(async () => { console.log('async'); await 0; console.log('awaited') })(); console.log('sync')",
    "timers": "const t = Date.now(); setTimeout(() => console.log(Date.now() - t >= 599), 600); const i = setInterval(() => { if (++n === 3) clearInterval(i) }, 1); let n = 0;"
              "setTimeout(() => console.log('unref'), 60000).unref(); require('timers/promises').setTimeout(5, 'v').then(console.log)",
    "import-builtin": {"code": "import fs from 'fs'; import { join } from 'node:path'; console.log(join('a', 'b'), typeof fs.readFileSync, import.meta.url, typeof require);"
                               "await null; console.log(process.argv)", "files": {"package.json": "{\"type\": \"module\"}"}, "args": ["x"]},
    "import-undeclared": "import fs from 'fs';\nconsole.log(typeof fs.readFileSync)",
    "import-await": "const x = await Promise.resolve(5); console.log(x)",
    "import-file": {"code": "import('./m.mjs').then((m) => console.log(m.default, m.url)); console.log('first')",
                    "files": {"m.mjs": "import { readFileSync } from 'fs'; export default await Promise.resolve(readFileSync(new URL('./d.txt', import.meta.url), 'utf8'));"
                                       "export const url = import.meta.url", "d.txt": "data"}},
    "import-missing": {"code": "import './missing.mjs'", "files": {"package.json": "{\"type\": \"module\"}"}},
    "import-throw": {"code": "console.log(1);\nthrow new Error('module')", "files": {"package.json": "{\"type\": \"module\"}"}},
    "import-unsettled": {"code": "console.log('a'); await new Promise(() => {})", "files": {"package.json": "{\"type\": \"module\"}"}},
    "import-syntax": {"code": "export const = 1", "files": {"package.json": "{\"type\": \"module\"}"}},
    "import-json-type": {"code": "module.exports = 1; console.log('cjs')", "files": {"package.json": "{\"type\": \"commonjs\", \"name\": \"n\"}"}},
    "package-broken": {"code": "console.log(1)", "files": {"package.json": "{\"type\": "}, "frames": False},  # found by the prelude, or by the program
    "files": "const fs = require('fs'); fs.mkdirSync('d/e', { recursive: true }); fs.writeFileSync('d/e/f.txt', 'content'); fs.appendFileSync('d/e/f.txt', '!');"
             "fs.promises.readFile('d/e/f.txt', 'utf8').then(console.log); fs.readdir('.', (e, l) => console.log(l)); console.log(fs.statSync('d').mode.toString(8), fs.existsSync('x'))",
    "file-streams": "const fs = require('fs'); const w = fs.createWriteStream('out.txt'); for (let i = 0; i < 1000; i++) w.write(i + '\\n');"
                    "w.end(() => require('stream').pipeline(fs.createReadStream('out.txt'), process.stdout, () => {}))",
    "descriptors": "const fd = require('fs').openSync('/dev/null'); console.log(fd, require('fs').readdirSync('/proc/self/fd').filter((n) => n > 22 && n !== '100'))",
    "worker": """
        const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
        if (isMainThread) {
            const w = new Worker(__filename, { workerData: 20 });
            let got;  // what a worker prints and what it sends come by two ways
            w.on('message', (m) => { got = m; }).on('exit', (c) => console.log('worker', c, 'got', got));
        } else {
            console.log('in worker', process.argv, process.execArgv, require.main === module, process.env.HOME);
            parentPort.postMessage(workerData + 1);
        }""",
    "worker-eval": "const { Worker } = require('worker_threads'); new Worker('console.log(require(\"worker_threads\").threadId); throw new Error(\"w\")', { eval: true })"
                   ".on('error', (e) => console.log('error', e.message)).on('exit', (c) => console.log(c))",
    "worker-exit": "const { Worker } = require('worker_threads'); const w = new Worker('setInterval(() => {}, 10)', { eval: true }); w.on('online', () => process.exit(6))",
    "child": "const c = require('child_process'); console.log(c.execFileSync(process.execPath, ['-e', 'console.log(process.argv.length, process.execArgv.length)']).toString());"
             "console.log(c.spawnSync('sh', ['-c', 'echo out; echo err >&2; exit 3']).status); c.spawn('cat', { stdio: ['pipe', 'inherit', 'inherit'] }).on('exit', (x) => console.log('cat', x)).stdin.end('to cat\\n')",
    "child-inherit": "require('child_process').spawnSync('sh', ['-c', 'cat; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; ls /proc/self/fd | wc -l'], { stdio: 'inherit' })",
    "child-fork": """
        const c = require('child_process');
        if (process.argv[2] === 'child') { process.send({ args: process.argv.slice(2), exec: process.execArgv }); process.disconnect(); }
        else c.fork(__filename, ['child', 'x']).on('message', (m) => console.log(m)).on('exit', (n) => console.log('exit', n))""",
    "cluster": """
        const cluster = require('cluster');
        if (cluster.isPrimary) { const w = cluster.fork(); w.on('message', (m) => { console.log(m); w.kill() }); w.on('exit', () => console.log('gone')) }
        else process.send('from worker ' + cluster.worker.id)""",
    "server": "const net = require('net'); const s = net.createServer((c) => c.end('bye')).listen(0, '127.0.0.1', () => net.connect(s.address().port, '127.0.0.1')"
              ".on('data', (d) => console.log(String(d))).on('close', () => s.close(() => console.log('closed'))))",
    "http": "const http = require('http'); const s = http.createServer((q, r) => { r.setHeader('X-A', 'b'); r.end(q.url) }).listen(0, '127.0.0.1', () =>"
            "http.get({ port: s.address().port, host: '127.0.0.1', path: '/p?q' }, (r) => { console.log(r.statusCode, r.headers['x-a']); r.on('data', (d) => console.log(String(d))).on('end', () => s.close()) }))",
    "crypto": "const c = require('crypto'); console.log(c.createHash('sha256').update('x').digest('hex'), c.randomBytes(8).length, c.randomUUID().length);"
              "c.pbkdf2('p', 's', 10, 16, 'sha1', (e, k) => console.log(k.toString('hex')))",
    "libraries": "for (const m of require('module').builtinModules.filter((m) => !m.startsWith('_') && !['sys', 'punycode', 'trace_events', 'wasi', 'inspector', 'inspector/promises', 'sqlite'].includes(m))) require(m); console.log('all')",
    "zlib": "const z = require('zlib'); z.gzip('hello'.repeat(100), (e, b) => z.gunzip(b, (e, d) => console.log(d.length))); console.log(z.deflateSync('x').toString('hex'))",
    "intl": "console.log(new Intl.NumberFormat('de').format(1234567.8), new Date(0).toString(), new Date(0).toLocaleString(), Intl.DateTimeFormat().resolvedOptions().timeZone, 'ä'.localeCompare('z', 'sv'))",
    "large-output": "for (let i = 0; i < 20000; i++) console.log('line', i); console.error('done')",
    "large-write": "process.stdout.write('x'.repeat(300000), () => console.log('\\nwritten'))",
    "large-exit": "process.stdout.write('y'.repeat(50000)); process.exit(0)",
    "stdout-facts": "const s = process.stdout; console.log(s.constructor.name, s.fd, s.isTTY, s.writable, s.readable, s._type, s.writableHighWaterMark, s.columns, process.stderr.fd, s === process.stdout, s.bytesWritten);"
                    "s.on('finish', () => {}); s.end('last\\n')",
    "stdout-property": "const d = Object.getOwnPropertyDescriptor(process, 'stderr'); console.log(Object.keys(d), typeof d.get, d.enumerable, d.configurable);"
                       "console.log(process.emit.name, process.reallyExit.name, process.emit.length)",
    "stdout-replaced": "Object.defineProperty(process, 'stdout', { value: { write: (s) => process.stderr.write('[' + s + ']') } }); console.log('x'); process.stdout.write('y')",
    "warnings": "process.emitWarning('careful', 'CustomWarning', 'C01'); new Buffer(3); const e = new (require('events'))(); for (let i = 0; i < 12; i++) e.on('x', () => {})",
    "regexp": "console.log([RegExp.$1, RegExp.lastMatch, RegExp.input, RegExp['$&'], RegExp.leftContext]); /(a)b/.exec('xaby'); console.log(RegExp.$1, RegExp.leftContext)",
    "weak": "const r = new WeakRef({}); console.log(r.deref() !== undefined); new FinalizationRegistry(() => {}).register({}, 1); console.log(typeof gc)",
    "wasm": "WebAssembly.instantiate(Uint8Array.from([0,97,115,109,1,0,0,0,1,5,1,96,0,1,127,3,2,1,0,7,5,1,1,102,0,0,10,6,1,4,0,65,42,11])).then((m) => console.log(m.instance.exports.f()))",
    "vm": "const vm = require('vm'); console.log(vm.runInNewContext('a + 1', { a: 2 }), vm.runInThisContext('typeof require'), new vm.Script('1+1').runInThisContext(), eval('1;2'), new Function('a', 'return a * 2')(4))",
    "async-storage": "const { AsyncLocalStorage } = require('async_hooks'); const s = new AsyncLocalStorage(); s.enterWith('top'); setTimeout(() => console.log(s.getStore()), 1); s.run('in', () => Promise.resolve().then(() => console.log(s.getStore()))); console.log(s.getStore())",
    "performance": "const { performance: p, PerformanceObserver } = require('perf_hooks'); p.mark('a'); p.mark('b'); console.log(p.measure('m', 'a', 'b').duration >= 0, p.getEntries().length, p.now() > 0, process.uptime() > 0, process.hrtime().length)",
    "fetch": "fetch('data:text/plain,hello').then((r) => r.text()).then(console.log); console.log(typeof structuredClone({ a: 1 }), btoa('x'), new URL('http://a/b?c=d').search, new TextEncoder().encode('é'))",
    "esm-loader-cache": {"code": "Promise.all([import('./a.cjs'), import('data:text/javascript,export default 7')]).then(([a, b]) => console.log(a.default, b.default))",
                         "files": {"a.cjs": "module.exports = 5"}},
    "console-all": "console.table([{ a: 1, b: 2 }, { a: 3, b: 4 }]); console.group('g'); console.info('in'); console.groupEnd(); console.count(); console.count(); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });"
                   "console.assert(false, 'no'); console.warn('w'); console.debug('d'); console.time(); console.log(typeof console.timeEnd)",
    "prototypes": "console.log(Object.getOwnPropertyNames(Object.getPrototypeOf(Object.getPrototypeOf(process))).sort().join(' '));"
                  "console.log(Object.prototype.toString.call(process), process instanceof require('events'), Object.getOwnPropertyNames(Error).sort().join(' '), Error.stackTraceLimit, Error.prepareStackTrace)",
}

JAVA = {
    "hello": 'System.out.println("hello " + args.length); System.err.println("err"); System.out.print("no newline");',
    "args": {"code": 'for (String a : args) System.out.println("[" + a + "]"); System.out.println(System.getProperty("sun.java.command"));',
             "args": ["a", "-b", "", "two words", "é"]},
    "stdin": {"code": 'var s = new java.util.Scanner(System.in); int n = 0; while (s.hasNextInt()) n += s.nextInt(); System.out.println(n);', "stdin": "1 2 3\n4\n"},
    "stdin-lines": {"code": 'var r = new java.io.BufferedReader(new java.io.InputStreamReader(System.in)); r.lines().map(String::toUpperCase).forEach(System.out::println);',
                    "stdin": "one\ntwo"},
    "env": {"code": 'new java.util.TreeMap<>(System.getenv()).forEach((k, v) -> System.out.println(k + "=" + v));', "env": {"MINE": "mine"}},
    "properties": 'for (String k : new java.util.TreeSet<>(System.getProperties().stringPropertyNames())) System.out.println(k + "=" + System.getProperty(k).replace("\\n", "N"));',
    "throw": 'throw new IllegalStateException("bad " + args.length);',
    "throw-cause": 'try { Object o = null; o.toString(); } catch (Exception e) { throw new RuntimeException("outer", e); }',
    "throw-deep": 'deep(12);',
    "trace": 'new Exception("here").printStackTrace(); for (var f : Thread.currentThread().getStackTrace()) System.out.println(f);'
             'StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).forEach(System.out::println);',
    "exit": 'Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook"))); System.out.println("a"); System.exit(7);',
    "exit-zero": 'System.out.println("a"); System.exit(0);',
    "halt": 'Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook"))); System.out.println("a"); Runtime.getRuntime().halt(9);',
    "hook": 'Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook"))); System.out.println("end of main");',
    "threads": 'new Thread(() -> { try { Thread.sleep(800); } catch (InterruptedException e) { } System.out.println("late"); }).start(); System.out.println("main ends");',
    "thread-names": 'Thread t = new Thread(() -> System.out.println(Thread.currentThread().getName() + " " + Thread.currentThread().getId())); t.start(); t.join();'
                    'System.out.println(Thread.currentThread() + " " + Thread.currentThread().getId() + " " + Thread.activeCount());',
    "daemon": 'Thread t = new Thread(() -> { while (true) { } }); t.setDaemon(true); t.start(); System.out.println("x");',
    "thread-throws": 'Thread t = new Thread(() -> { throw new RuntimeException("in thread"); }); t.start(); t.join(); System.out.println("main goes on");',
    "main-throws-thread-lives": 'new Thread(() -> { try { Thread.sleep(50); } catch (InterruptedException e) { } System.out.println("late"); }).start(); throw new Error("main");',
    "handler": 'Thread.setDefaultUncaughtExceptionHandler((t, e) -> System.out.println(t.getName() + " " + e.getMessage())); throw new RuntimeException("h");',
    "loaders": 'var c = Main.class.getClassLoader(); System.out.println((c == ClassLoader.getSystemClassLoader()) + " " + (c == Thread.currentThread().getContextClassLoader()) + " " + c.getClass() + " " + c.getName());'
               'System.out.println(Main.class.getModule() + " " + Main.class.getProtectionDomain().getCodeSource().getLocation() + " " + c.getResource("Main.class"));',
    "resource": {"code": 'System.out.println(new String(Main.class.getResourceAsStream("/data.txt").readAllBytes()));', "files": {"data.txt": "resource"}},
    "files": 'java.nio.file.Files.writeString(java.nio.file.Path.of("out.txt"), "content"); System.out.println(new java.io.File("out.txt").getAbsolutePath() + " " + new java.io.File("out.txt").length());',
    "access": 'try { var f = java.io.FileDescriptor.class.getDeclaredField("fd"); f.setAccessible(true); System.out.println("open"); } catch (Exception e) { System.out.println(e.getMessage()); }'
              'try { Class.forName("sun.launcher.LauncherHelper").getMethod("checkAndLoadMain", boolean.class, int.class, String.class).invoke(null, true, 1, "Main"); } catch (Exception e) { System.out.println(e.getClass()); }',
    "memory": 'System.out.println(Runtime.getRuntime().maxMemory() + " " + Runtime.getRuntime().availableProcessors());',
    "out-of-memory": 'var l = new java.util.ArrayList<byte[]>(); while (true) l.add(new byte[10 << 20]);',
    "overflow": 'try { again(); } catch (StackOverflowError e) { System.out.println("overflow " + e.getMessage()); }',
    "assert": 'assert args.length > 5 : "off"; System.out.println("assertions off");',
    "process": 'Process p = new ProcessBuilder("sh", "-c", "echo child; cat; exit 3").redirectErrorStream(true).start(); p.getOutputStream().close(); System.out.print(new String(p.getInputStream().readAllBytes())); System.out.println(p.waitFor());',
    "inherit": 'System.out.println(new ProcessBuilder("sh", "-c", "echo inherited; ls /proc/self/fd | wc -l").inheritIO().start().waitFor());',
    "reflection": 'Main.class.getDeclaredMethod("deep", int.class).invoke(null, 0);',
    "lambda": 'System.out.println(java.util.stream.IntStream.range(0, 10).boxed().collect(java.util.stream.Collectors.groupingBy(i -> i % 3)));'
              'System.out.printf("%.3f %s%n", Math.PI, java.time.LocalDate.of(2020, 2, 29).plusYears(1)); System.out.println(String.format("%,d", 1234567));',
    "concurrency": 'var e = java.util.concurrent.Executors.newFixedThreadPool(3); var f = new java.util.ArrayList<java.util.concurrent.Future<Integer>>(); for (int i = 0; i < 5; i++) { int n = i; f.add(e.submit(() -> n * n)); }'
                   'for (var x : f) System.out.println(x.get()); e.shutdown(); System.out.println(java.util.concurrent.CompletableFuture.supplyAsync(() -> 5).get());',
    "large-output": 'for (int i = 0; i < 20000; i++) System.out.println("line " + i);',
    "seeded": 'System.out.println(new java.util.Random(42).nextInt()); System.out.println(java.util.List.of(1, 2, 3).hashCode() + " " + "text".hashCode());',
    "kill": 'System.out.println("a"); System.out.flush(); new ProcessBuilder("sh", "-c", "kill -TERM " + ProcessHandle.current().pid()).start().waitFor(); Thread.sleep(20000);',
    "package-private": {"source": "class Main {\n  public static void main(String... words) { System.out.println(words.length + \" \" + Main.class.getModifiers()); }\n}\n", "args": ["x"]},
    "no-main": {"source": "public class Main {\n  static void main() { }\n}\n"},
    "instance-main": {"source": "public class Main {\n  public void main(String[] a) { }\n}\n"},
    "other-class": {"source": "public class Other {\n  record P(int x) { }\n  interface I { default int f() { return 4; } }\n  public static void main(String[] a) { System.out.println(new P(3) + \" \" + new I() { }.f()); }\n}\n"},
    "initializer-throws": {"source": "public class Main {\n  static int x = 1 / Integer.parseInt(\"0\");\n  public static void main(String[] a) { }\n}\n"},
    "in-package": {"source": "public class Main extends Thread {\n  public void run() { throw new RuntimeException(\"t\"); }\n  public static void main(String[] a) throws Exception { var m = new Main(); m.start(); m.join(); }\n}\n"},
}


TYPESCRIPT = {
    "hello": "const n: number = 1; console.log('hello', n, process.argv.slice(1), process.execArgv, __filename)",
    "types": "interface P { x: number } enum E { A = 3, B } class C<T> implements P { constructor(public x: number, private t?: T) {} }\nconsole.log(new C<string>(4), E.B, E[3])",
    "throw": "type Name = string;\nfunction fail(n: Name): never {\n  throw new TypeError('bad ' + n);\n}\nfail('x')",
    "rejection": "const p: Promise<void> = Promise.reject(new Error('r'))",
    "stack": "interface A { b: 1 }\nfunction where(): string { return new Error('here').stack! }\nconsole.log(where())",
    "import": {"code": "import { readFileSync } from 'fs'; import { twice } from './lib'; console.log(twice(21), typeof readFileSync)",
               "files": {"lib.ts": "export const twice = (n: number): number => n * 2;"}},
    "async": "const wait = (ms: number) => new Promise<void>((r) => setTimeout(r, ms)); (async () => { await wait(5); console.log('late'); process.exitCode = 4 })()",
    "top-await": {"code": "import { two } from './lib'; const n: number = await two();\nfor await (const i of [n, 3]) console.log(i, typeof require('os').cpus)",
                  "files": {"lib.ts": "export const two = async (): Promise<number> => 2;"}},
    "top-await-throw": "const f = (n: number): never => {\n  throw new RangeError('late ' + n);\n};\nf(await Promise.resolve(1))",
    "top-await-unsettled": "console.log('a'); await new Promise<void>(() => {})",
    "import-meta": "console.log(new URL(import.meta.url).pathname, typeof require)",
    "main-module": "if (require.main === module) console.log('main', __dirname)",
}

# These see and print and come to their end: one program does it for all of them.
JAVA_FACTS = ("properties", "env", "trace", "loaders", "resource", "access", "memory", "assert", "lambda", "seeded", "overflow", "files",
              "concurrency", "process", "inherit")
TABLES = {"javascript": JAVASCRIPT, "java": JAVA, "typescript": TYPESCRIPT}
PROGRAMS = [(language, name) for language, table in TABLES.items() for name in table if language != "java" or name not in JAVA_FACTS]
PROGRAMS.append(("java", ",".join(JAVA_FACTS)))
TELL = {
    "typescript": "console.log(require('fs').readdirSync('/proc/self/fd').includes('100') ? 'warm' : 'cold')",
    "java": "public class Main { public static void main(String[] a) {"
            " System.out.println(java.util.List.of(new java.io.File(\"/proc/self/fd\").list()).contains(\"100\") ? \"warm\" : \"cold\"); } }",
}
TELL["javascript"] = TELL["typescript"]
SUFFIX = {"javascript": "js", "typescript": "ts", "java": "java"}
RANDOM = {
    "javascript": "console.log(Math.random(), require('crypto').randomBytes(16).toString('hex'), crypto.randomUUID())",
    "java": "public class Main { public static void main(String[] a) { System.out.println(Math.random() + \" \" + new java.util.Random().nextLong()"
            " + \" \" + java.util.UUID.randomUUID() + \" \" + java.util.concurrent.ThreadLocalRandom.current().nextLong()); } }",
}


class Pair(resident.Pair):
    """The same request cold and warm."""

    def until_warm(self, language):
        end = time.monotonic() + 120
        while self.warm.result(["-l", language, "-c", TELL[language]], timeout=60)["stdout"] != "warm\n":
            assert time.monotonic() < end, f"{language} does not get warm"
            time.sleep(0.5)  # each try costs a cold runtime, and so does what is started ahead


@pytest.fixture(scope="module", params=["root"])
def pair(request, stage):
    it = Pair(Atoll(request.param, stage), stage.scratch(request.param, "pool") / "pool.sock")
    # Every program is compiled once, cold. With a kit that takes less; the pool has none, it would make all the others.
    it.cold = it.cold.variant(env={"ATOLL_KIT_DIR": stage.java_kit()})
    yield it
    it.end()


@pytest.fixture
def leaks():
    """The pool of this module keeps sandboxes on purpose."""


def java_source():
    """One source for all bodies of the table, compiled once; the variable PROGRAM says which of them run."""
    bodies = {name: entry["code"] if isinstance(entry, dict) else entry for name, entry in JAVA.items()
              if isinstance(entry, str) or "code" in entry}
    methods = "".join(f"  static void run{n}(String[] args) throws Exception {{\n    {body}\n  }}\n" for n, body in enumerate(bodies.values()))
    cases = "".join(f"      case \"{name}\": run{n}(args); break;\n" for n, name in enumerate(bodies))
    return ("public class Main {\n"
            "  static void deep(int n) { if (n == 0) throw new RuntimeException(\"deep\"); deep(n - 1); }\n"
            "  static void again() { again(); }\n" + methods +
            "  public static void main(String[] args) throws Exception {\n"
            "    for (String name : System.getenv(\"PROGRAM\").split(\",\")) switch (name) {\n" + cases + "    }\n  }\n}\n")


def case(language, name):
    """What the table has, as a request; of several names, what is given to any of them."""
    entry = {}
    for one in name.split(","):
        more = TABLES[language][one]
        entry |= more if isinstance(more, dict) else {"code": more}
    if language == "java" and "source" not in entry:
        entry |= {"source": java_source(), "env": {**entry.get("env", {}), "PROGRAM": name}}
    return {"code": entry.get("source", entry.get("code")), "files": entry.get("files", {}), "args": entry.get("args", []),
            "stdin": entry.get("stdin", ""), "env": entry.get("env", {}), "frames": entry.get("frames", True)}


def outcome(atoll, language, request):
    place = Path(tempfile.mkdtemp(prefix="tests-"))
    place.chmod(0o777)
    try:
        name = re.search(r"class (\w+)", request["code"])[1] if language == "java" else "code"
        source = place / f"{name}.{SUFFIX[language]}"
        source.write_text(request["code"])
        words = ["-l", language, "--output-dir", place / "made"]
        for path, text in request["files"].items():
            at = place / "given" / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
            words += ["--file", f"{path}={at}"]
        for key, value in request["env"].items():
            words += ["--env", f"{key}={value}"]
        words += [source, *(["--", *request["args"]] if request["args"] else [])]
        result = atoll.result(words, input=request["stdin"], timeout=60)
        made = {str(p.relative_to(place)): p.read_bytes() for p in sorted((place / "made").rglob("*")) if p.is_file()}
    finally:
        shutil.rmtree(place)
    assert result["stages"] and result["stages"][-1]["name"] == "run", result
    assert atoll.extra["ATOLL_POOL"] == "off" or language == "javascript" or result["cached_build"], result
    seen = {key: result.get(key) for key in ("status", "exit_code", "signal", "stdout", "stderr")}
    for key in ("stdout", "stderr"):
        # Java's identity hashes: of modules, of objects.
        seen[key] = re.sub(r"(?<=@)[0-9a-f]{5,8}\b", "HASH", seen[key] or "")
        if not request["frames"]:
            seen[key] = re.sub(r"^    at .*\n", "", seen[key], flags=re.MULTILINE)
    return seen, made


@pytest.mark.matrix(3)
@pytest.mark.parametrize("language, name", PROGRAMS, ids=[f"{language}-{'facts' if ',' in name else name}" for language, name in PROGRAMS])
def test_nothing_tells_it_from_cold(pair, language, name):
    request = case(language, name)
    cold = outcome(pair.cold, language, request)  # compiles; the next one finds the product
    assert outcome(pair.warm, language, request) == cold


def test_the_tables_are_long():
    assert len(JAVASCRIPT) >= 40 and len(JAVA) >= 15


@pytest.mark.parametrize("language", TABLES)
def test_programs_are_warm(pair, language):
    words, end = [], time.monotonic() + 120
    while words[-4:] != ["warm\n"] * 4:
        assert time.monotonic() < end, words
        time.sleep(0.2)
        words.append(pair.warm.result(["-l", language, "-c", TELL[language]])["stdout"])
    assert pair.cold.result(["-l", language, "-c", TELL[language]])["stdout"] == "cold\n"


@pytest.mark.modes("rootless")
def test_an_ordinary_user_has_warm_programs(atoll, work):
    it = Pair(atoll, work / "pool.sock")
    try:
        for language in TABLES:
            it.until_warm(language)
        for language, name in (("javascript", "throw"), ("typescript", "stack"), ("java", "properties")):
            request = case(language, name)
            cold = outcome(it.cold, language, request)
            assert outcome(it.warm, language, request) == cold
    finally:
        it.end()


@pytest.mark.parametrize("language", RANDOM)
def test_random_numbers_are_not_shared(pair, language):
    pair.until_warm(language)
    words = " ".join(pair.warm.result(["-l", language, "-c", RANDOM[language]])["stdout"] for _ in range(6)).split()
    assert len(words) >= 18 and len(set(words)) == len(words)


@pytest.mark.parametrize("name", ["NODE_OPTIONS", "NODE_PATH", "UV_THREADPOOL_SIZE", "TZ"])
def test_variables_that_node_reads_once_make_it_cold(pair, name):
    pair.until_warm("javascript")
    value = {"NODE_OPTIONS": "--no-warnings", "UV_THREADPOOL_SIZE": "2"}.get(name, "/x")
    assert pair.warm.result(["-l", "javascript", "--env", f"{name}={value}", "-c", TELL["javascript"]])["stdout"] == "cold\n"


def test_limits_hold_in_a_started_runtime(pair):
    pair.until_warm("javascript")
    for options, code in ((["--timeout", "250ms"], "for (;;) {}"),
                          (["--cpu-time", "200ms"], "for (;;) {}"),
                          (["--memory", "128m"], "const a = []; for (;;) a.push(Buffer.alloc(8 << 20, 1))"),
                          # Not by console.log(): what the pipe has no room for it keeps, and the memory ends first when the front does not read for a while.
                          (["--output-total", "100k"], "for (;;) require('fs').writeSync(1, 'x'.repeat(100))")):
        cold, warm = (atoll.result(["-l", "javascript", *options, "-c", code]) for atoll in (pair.cold, pair.warm))
        assert cold["status"] != "success"
        assert [warm[key] for key in ("status", "exit_code", "signal")] == [cold[key] for key in ("status", "exit_code", "signal")]
        assert [warm["cause"][key] for key in ("kind", "limit_key", "limit")] == [cold["cause"][key] for key in ("kind", "limit_key", "limit")]


def test_the_jar_is_made_of_its_source():
    source = (ROOT / "runners" / "java" / "Start.java").read_bytes()
    with zipfile.ZipFile(ROOT / "runners" / "java" / "start.jar") as jar:
        assert jar.comment.decode() == hashlib.sha256(source).hexdigest(), "run runners/java/make-jar.py"
        assert jar.namelist() == ["atoll/Start.class"]


def test_es_modules_by_name(pair, tmp_path):
    """`.mjs` and `.mts` say what they are; the file keeps its name."""
    tmp_path.chmod(0o755)
    for language, suffix, number in (("javascript", "mjs", "1"), ("typescript", "mts", "1 as number")):
        path = tmp_path / f"program.{suffix}"
        path.write_text(f"import {{ basename }} from 'path';\nconst one = await Promise.resolve({number});\n"
                        "console.log(one, basename(import.meta.url), typeof module);\nthrow new Error('end');\n")
        pair.until_warm(language)
        cold, warm = ({key: front.result([path]).get(key) for key in ("stdout", "stderr", "exit_code")} for front in (pair.cold, pair.warm))
        assert warm == cold and cold["stdout"].startswith("1 ") and f"/sandbox/program.{suffix}:4" in cold["stderr"], cold
