// SPDX-License-Identifier: Apache-2.0
// Node.js that was started before its program was known (`warm: kind: start` in languages/).
//
// Node runs this file as its main module. It warms the code up that nearly every program uses, waits for a program
// in a blocking read of the control descriptor, makes the process look as if it had been started with the program's
// words, and runs it through the same entry point that `node PATH` uses. The agent (src/broker/warm) does what only C can:
// descriptors 0-2, working directory, files and variables are the program's by the time the read returns.
//
// The program is started from a 'beforeExit' that Node itself emits. That is the one place where Node calls a function
// of ours with nothing below it on the stack and with ticks and promises run behind it exactly as behind a main
// module, so that the program's stack traces and the order of its callbacks are those of an ordinary start.
//
// The end is reported by the last listener of 'exit', which is added when Node looks process.emit up to emit it, or by
// process.reallyExit; other ways out end as ever. process.stdout and process.stderr are made ahead, on a pipe that the
// agent replaces. NODE_PRESERVE_SYMLINKS_MAIN is set because the link to this file leads to no path.
//
// Known to differ from a cold run: performance.now(), performance.timeOrigin and process.uptime() count from the start of
// the process; async ids (the program's own is 0 instead of 1); which number a file gets that is opened after something
// was printed; process.stderr.bytesWritten; the line in node:events when the only 'exit' listener throws; process.emit is
// inherited from process's own prototype; a worker whose file is a symbolic link is not resolved; module 'os' in a worker
// answers without the prelude; the trace of a package.json that is no JSON; process.moduleLoadList.
//
// Tried and left out: a startup snapshot (starts 4 ms later than without), --single-threaded, --no-opt and
// --v8-pool-size=0 (little gain, other behaviour), --always-sparkplug while warming up (slower by a tenth).
'use strict';

const fs = require('fs');
const Module = require('module');
const path = require('path');
const vm = require('vm');

const CONTROL = 100;
const PRELUDE = '/sys/atoll/prelude';
const ENTRY = 'internal/main/run_main_module';

// Functions that the end of the process needs, saved before a program can replace them.
const { prototype: emitter } = require('events');
const { apply } = Reflect;
const { captureStackTrace } = Error;
const { hasOwn } = Object;
const { fstatSync, readSync, writeSync } = fs;
const { ino: inode } = fstatSync(CONTROL);
const lastBlock = Buffer.allocUnsafeSlow(1);
const runTicks = process._tickCallback;
const reallyExit = process.reallyExit;
const home = process.env.HOME;

// Reads up to the end of the launch text. It is short, so the first read has all of it.
function readControl() {
	let block = Buffer.allocUnsafeSlow(1 << 16);
	let length = 0;
	for (;;) {
		const n = fs.readSync(CONTROL, block, length, block.length - length, null);
		length += n;
		if (n === 0)
			return block.utf8Slice(0, length);
		if (length === block.length)
			block = Buffer.concat([block], 2 * length);
	}
}

// Reports the program's end to the broker; all its output has left the process by then. The broker then kills this process:
// an ordinary exit would keep the processor busy with freeing memory. The program may have replaced the descriptor.
function done(code, fd = CONTROL) {
	try {
		if (fd === CONTROL && fstatSync(fd).ino !== inode)
			return;
		writeSync(fd, String(code & 255));
		if (fd === CONTROL)
			readSync(fd, lastBlock, 0, 1, null);
	} catch {
		// The program closed the descriptor: its wait status gives the same, later.
	}
}

const countFrames = (error, frames) => frames.length;

// True if Node's C++ called `callee`, and no JavaScript did.
function calledByNode(callee) {
	const { stackTraceLimit, prepareStackTrace } = Error;
	const had = hasOwn(Error, 'prepareStackTrace');
	const trace = {};
	try {
		Error.stackTraceLimit = 1;
		Error.prepareStackTrace = countFrames;
		captureStackTrace(trace, callee);
		return trace.stack === 0;
	} catch {
		return false;
	} finally {
		Error.stackTraceLimit = stackTraceLimit;
		Error.prepareStackTrace = prepareStackTrace;
		if (!had)
			delete Error.prepareStackTrace;
	}
}

// Node tears its heap down between the last event and exit(), which takes longer than most programs. So the end is
// reported after the last listener of 'exit', instead of the event if it has none, or from the call that ends
// process.exit(). Every other way out (an exit code, an uncaught exception, a signal) is left as it is.
function finish() {
	apply(runTicks, process, []);
	if (!process.exitCode) {
		done(0);
		apply(reallyExit, process, [0]);
	}
}

// Node's C++ looks up process.emit right before it emits 'exit': then the last listener is added.
function getEmit() {
	if (process._exiting && calledByNode(getEmit)) {
		const events = process._events;
		const old = events.exit;
		if (old === undefined)
			return finish;
		events.exit = typeof old === 'function' ? [old, finish] : [...old, finish];
	}
	return emitter.emit;
}

function setEmit(value) {
	Object.defineProperty(this, 'emit', { value, writable: true, enumerable: true, configurable: true });
}

function watchExit() {
	Object.defineProperty(Object.getPrototypeOf(process), 'emit',
		{ get: getEmit, set: setEmit, enumerable: false, configurable: true });
	process.reallyExit = function (code) {
		done(code || 0);
		apply(reallyExit, process, [code]);
	}.bind(process);
	Object.defineProperty(process.reallyExit, 'name', { value: 'reallyExit' });
}

// A standard stream as a program finds it, made ahead: the agent puts the program's pipe below the same descriptor. Node
// makes a pipe non-blocking when its stream is first used, and not before, because children share it. Returns a function that
// makes the stream look unused.
function openStream(name) {
	const { _handle: handle } = process[name];
	const property = Object.getOwnPropertyDescriptor(process, name);
	const get = () => {
		Object.defineProperty(process, name, property);
		handle.setBlocking(false);
		handle.ref();
		return process[name];
	};
	return () => {
		handle.unref();
		Object.defineProperty(process, name, { ...property, get });
	};
}

// Removes traces of this module that a program could see.
function forget() {
	delete process.mainModule;
	for (const name of Object.keys(require.cache))
		delete require.cache[name];
	for (const key of Object.keys(Module._pathCache))
		delete Module._pathCache[key];
}

// The launch text: number of words, words, variables.
function become(text) {
	const words = text.split('\0', 1 + parseInt(text, 10));
	const first = 2 + process.execArgv.length;
	words[first] = path.resolve(words[first]);
	words[first - 1] = process.argv[0];
	process.argv = words.slice(first - 1);
	if (process.env.HOME !== home)
		Module._initPaths();
}

// A closing handle makes Node run its loop once more, as after a main module. Without it 'beforeExit' would not be emitted
// again.
function loopTurner() {
	const { Pipe, constants } = process.binding('pipe_wrap');
	const handle = new Pipe(constants.SOCKET);
	handle.unref();
	return handle;
}

function park() {
	delete process.emit;
	/^/.exec(''); // RegExp.$1 and its like are empty
	loopTurner().close();
	become(readControl());
}

// A function that waits and then runs the program, at the place where Node's own entry script does so.
function entry() {
	const lines = process.binding('natives')[ENTRY].split('\n');
	const line = Math.max(0, lines.findLastIndex((text) => text.includes('.runMain(')));
	const head = '(park, Module) => () => { park(); Module.';
	const start = vm.runInThisContext(`${head}runMain(); }`, {
		filename: `node:${ENTRY}`,
		lineOffset: line,
		columnOffset: lines[line].indexOf('runMain(') - head.length,
	});
	return start(park, Module).bind(undefined);
}

// V8 compiles frequently called functions in batches. A program would wait 0.1 ms for a batch that the warm-up had nearly filled,
// so the warm-up adds nothing to one. Not from the beginning: Node's modules come with code for the usual flags only.
const { setFlagsFromString: setFlags } = require('v8');

// Each step is repeated often enough for V8 to keep its type feedback.
const OFTEN = 3;

// Output of the warm-up goes into a pipe without a reader, which is closed before the program comes. It goes to standard
// error only, because a program can read how much was written to its standard output. After the last write the console
// drops both streams.
async function printOften() {
	if (!fs.fstatSync(1).isFIFO() || !fs.fstatSync(2).isFIFO())
		return;
	const untouch = [openStream('stdout'), openStream('stderr')];
	class Point {
		x = 1;
	}
	for (let i = 0; i < OFTEN; i++) {
		console._stdout = process.stderr;
		console.log(i);
		console.log('%s is %d', 'one', 1, true, null, undefined, 1.5);
		console.log([1, 2, 3], { a: 1, b: 'two' }, new Point(), new Map([[1, 2]]), new Set(['a']));
		console.error(new Error('x').message);
		process.stderr.write(`${process.stdout.fd}\n`);
		await new Promise((resolve) => setImmediate(resolve));
		for (const again of untouch)
			again();
		console._stdout = undefined;
		console._stderr = undefined;
	}
}

function endOften() {
	const sink = fs.openSync('/dev/null', 'w');
	for (let i = 0; i < OFTEN; i++) {
		done(0, sink);
		calledByNode(endOften);
		process.emit('warm-up', 0);
		loopTurner().close();
		process.exitCode = 1;
		finish();
		process.exitCode = undefined;
	}
	fs.closeSync(sink);
}

function loadOften() {
	const text = `2\0${process.execPath}\0${[...process.execArgv, '/dev/null'].join('\0')}\0A=b\0`;
	for (let i = 0; i < OFTEN; i++) {
		become(text);
		Module.runMain();
		forget();
	}
}

function workOften() {
	for (let i = 0; i < OFTEN; i++) {
		JSON.parse(JSON.stringify({ a: [1, 2, { b: null }], c: 'd' }, null, 2));
		fs.existsSync('/dev/null');
		fs.readFileSync('/dev/null', 'utf8');
		setTimeout(() => {}, 0);
		setImmediate(() => {});
		process.nextTick(() => {});
		Promise.resolve(i).then((value) => value + 1);
	}
}

// With --enable-source-maps: a program's map is read with it, and again for its first stack trace.
function mapOften() {
	if (!process.execArgv.includes('--enable-source-maps'))
		return;
	const map = { version: 3, sources: ['warm-up.ts'], sourcesContent: ['1'], names: [], mappings: 'AAAA' };
	const url = `data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}`;
	for (let i = 0; i < OFTEN; i++)
		new Module('warm-up')._compile(`new Error('x').stack;\n//# sourceMappingURL=${url}\n`, '/dev/null');
}

async function warmUp() {
	// Keeps the number of a program's first file: libuv opens a descriptor for itself with its first stream, and keeps it.
	const first = fs.openSync('/dev/null');
	await import('data:text/javascript,export default 1');
	await printOften();
	fs.closeSync(first);
	setFlags('--no-sparkplug');
	workOften();
	mapOften();
	loadOften();
	endOften();
	await printOften();
}

function ready() {
	forget();
	process.emit = start;
	setFlags('--sparkplug');
}

require(PRELUDE);
process.execArgv.unshift('-r', PRELUDE);
const order = Buffer.alloc(1);
fs.readSync(CONTROL, order, 0, 1, null);
watchExit();
const start = entry();
if (order.toString() === 'w')
	warmUp().catch(() => {}).then(ready);
else
	ready();
