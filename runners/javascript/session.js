// SPDX-License-Identifier: Apache-2.0
// Runs the executions of one JavaScript session on Node.js (runners/README.md describes the lines of the channel). The front joins
// session_tools.js and this file, in this order, to one program.
//
// Executions are evaluated by V8's own console mode, through an inspector session of this thread: `await` works outside of functions, let, const
// and class persist and may be declared again, and the completion value is the value. The console mode knows no `return` and no import() outside of
// functions; acorn, which Node carries for its own console, finds them, and they are replaced by calls of ours.
//
// Node cannot duplicate a descriptor, so the channel stays descriptor 0. Instead process.stdin is an empty stream, reads of descriptor 0 find its
// end, and children never inherit it.
//
// SIGINT: Node's watchdog of SIGINT has the signal all the time. While code runs synchronously, vm's breakOnSigint ends it: V8 terminates the
// code wherever it is, so in that time nothing is written to the channel, and console writes without a stream that could be left
// half-way. While the execution waits for an event, a timer looks for the signal and ends the execution; its promises go on. The next
// execution drops a signal that came between executions. Code that a timer or an event calls cannot be interrupted, and a termination in the
// instant in which code ends can end Node: then the state is lost, and the front says so.
// ---------------------------------------------------------------------------------------- channel

const channel = new net.Socket({ fd: 0, readable: true, writable: true });
let pieces = []; // of a line whose end has not come yet
let held = null; // lines of synchronous code

function write(line) {
	if (held)
		held.push(line);
	else
		channel.write(line);
}

function send(message) {
	write(`${JSON.stringify(message)}\n`);
}

channel.on('data', (data) => {
	for (let end; (end = data.indexOf(10)) >= 0; data = data.subarray(end + 1)) {
		const line = Buffer.concat([...pieces, data.subarray(0, end)]);
		pieces = [];
		receive(JSON.parse(line.toString()));
	}
	pieces.push(data);
});
channel.on('error', () => process.reallyExit(0));
channel.on('end', () => {
	process.exitCode = lastExitCode;
	channel.destroy(); // Node exits when nothing else is left to do
});

function receive(message) {
	if (message.op === 'return')
		attempt(() => answerCall(message));
	else if (message.op === 'run')
		execute(message);
	else
		send(answerFile(message));
}

// Writes without a stream. A descriptor that Node has made non-blocking may be full for a while.
function sink(fd) {
	const cell = new Int32Array(new SharedArrayBuffer(4));
	const { writeSync } = fs;
	return { write(text) {
		for (let data = Buffer.from(text); data.length > 0;) {
			try {
				data = data.subarray(writeSync(fd, data));
			} catch (error) {
				if (error.code !== 'EAGAIN')
					return;
				Atomics.wait(cell, 0, 0, 1);
			}
		}
	} };
}

const standardError = sink(2);

let input; // process.stdin, once the execution has asked for it
let inputLeft = Buffer.alloc(0); // of the execution's standard input

function setInput(text) {
	input = undefined;
	inputLeft = Buffer.from(text ?? '');
}

function takeInput(length) {
	const taken = inputLeft.subarray(0, length);
	inputLeft = inputLeft.subarray(taken.length);
	return taken;
}

// Children find no input: theirs would be the channel.
function hideInput() {
	Object.defineProperty(process, 'stdin', { configurable: true, enumerable: true,
		get: () => (input ??= Object.assign(Readable.from(inputLeft.length ? [takeInput()] : []), { fd: 0 })) });
	const { readSync, readFileSync } = fs;
	fs.readSync = (fd, buffer, options, length, ...rest) => {
		if (fd !== 0)
			return readSync(fd, buffer, options, length, ...rest);
		const offset = (typeof options === 'object' ? options?.offset : options) ?? 0;
		return takeInput((typeof options === 'object' ? options?.length : length) ?? buffer.byteLength - offset).copy(buffer, offset);
	};
	fs.readFileSync = (file, options) => {
		if (file !== 0 && file !== '/dev/stdin')
			return readFileSync(file, options);
		const encoding = typeof options === 'string' ? options : options?.encoding;
		return encoding ? takeInput().toString(encoding) : Buffer.from(takeInput());
	};
	const isInput = (item) => item === 'inherit' || item === 0 || item === input;
	const without = (options) => {
		const { stdio } = options ?? {};
		if (stdio === 'inherit')
			return { ...options, stdio: ['ignore', 'inherit', 'inherit'] };
		return Array.isArray(stdio) && isInput(stdio[0]) ? { ...options, stdio: ['ignore', ...stdio.slice(1)] } : options;
	};
	const { spawn } = childProcess.ChildProcess.prototype;
	childProcess.ChildProcess.prototype.spawn = function (options) {
		return spawn.call(this, without(options));
	};
	for (const name of ['spawnSync', 'execFileSync', 'execSync']) {
		const original = childProcess[name];
		childProcess[name] = (...args) => original(...args.map((arg) => (Array.isArray(arg) || typeof arg !== 'object' ? arg : without(arg))));
	}
}

// ---------------------------------------------------------------------------------- host functions

class HostError extends Error {
	constructor(error) {
		super(error.message);
		this.name = 'HostError';
		this.type = error.type;
	}
}

const KNOWN_ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const calls = new Map(); // number -> functions that settle the promise
let callCount = 0;
const hostFunctions = new Map();

// Puts the functions into the namespace, and takes those away that this execution does not have.
function bindHost(names) {
	for (const [name, call] of hostFunctions) {
		if (!names.includes(name) && hostFunctions.delete(name) && globalThis[name] === call)
			delete globalThis[name];
	}
	for (const name of names) {
		if (!hostFunctions.has(name))
			hostFunctions.set(name, hostFunction(name));
		globalThis[name] = hostFunctions.get(name);
	}
}

function hostFunction(name) {
	const call = (...args) => new Promise((resolve, fail) => {
		const here = {};
		Error.captureStackTrace(here, call);
		const reject = (error) => {
			error.stack = [`${error.name}: ${error.message}`, ...here.stack.split('\n').slice(1)].join('\n');
			fail(error);
		};
		if (!current)
			return reject(new Error(`${name}() is a function of the host: no execution is running`));
		try {
			const line = JSON.stringify({ op: 'call', call: callCount + 1, name, args: args.map((arg) => tag(arg)), kwargs: {} });
			if (Buffer.byteLength(line) > ARGUMENTS_MOST)
				throw new RangeError(`arguments of ${name}() take ${Buffer.byteLength(line)} bytes; at most ${ARGUMENTS_MOST} are allowed`);
			calls.set(++callCount, { resolve, reject });
			write(`${line}\n`);
		} catch (error) {
			reject(error);
		}
	});
	return Object.defineProperty(call, 'name', { value: name });
}

function answerCall({ call, result, error }) {
	const waiter = calls.get(call);
	if (!waiter || !calls.delete(call))
		return;
	try {
		if (error)
			waiter.reject(KNOWN_ERRORS[error.type] ? new KNOWN_ERRORS[error.type](error.message) : new HostError(error));
		else
			waiter.resolve(untag(result));
	} catch (trouble) {
		waiter.reject(trouble);
	}
}

// ------------------------------------------------------------------------------------- rich outputs

const MIMES = { toHTML: 'text/html', _toHtml: 'text/html', toSVG: 'image/svg+xml', _toSvg: 'image/svg+xml', toPNG: 'image/png', _toPng: 'image/png' };
const SIGNATURES = [['image/png', Buffer.from('\x89PNG\r\n', 'latin1')], ['image/jpeg', Buffer.from('\xff\xd8\xff', 'latin1')]];

function rich(value) {
	if (value === null || typeof value !== 'object')
		return {};
	if (Buffer.isBuffer(value)) {
		const found = SIGNATURES.find(([, start]) => value.subarray(0, start.length).equals(start));
		return found ? { [found[0]]: value } : {};
	}
	const data = {};
	for (const name of [Symbol.for('Jupyter.display'), '_toMime']) {
		if (typeof value[name] === 'function')
			Object.assign(data, value[name]());
	}
	for (const [name, mime] of Object.entries(MIMES)) {
		if (typeof value[name] === 'function')
			data[mime] ??= value[name]();
	}
	return data;
}

function publish(value, data) {
	if (!current || ++current.outputs > OUTPUTS_MOST) {
		if (current?.outputs === OUTPUTS_MOST + 1)
			standardError.write(`More than ${OUTPUTS_MOST} outputs in one execution: the rest is left out.\n`);
		return;
	}
	const all = { 'text/plain': shortened(util.inspect(value), TEXT_MOST) };
	for (const [mime, item] of Object.entries(data))
		all[mime] = item instanceof Uint8Array ? Buffer.from(item).toString('base64') : typeof item === 'string' ? item.toWellFormed() : tag(item);
	let line = JSON.stringify({ op: 'output', n: current.n, data: all, metadata: {} });
	if (Buffer.byteLength(line) > LINE_MOST) {
		const text = `output of ${Buffer.byteLength(line)} bytes is too large; at most ${LINE_MOST} are allowed`;
		line = JSON.stringify({ op: 'output', n: current.n, data: { 'text/plain': text }, metadata: {} });
	}
	write(`${line}\n`);
}

function display(...values) {
	for (const value of values)
		publish(value, rich(value));
}

// ------------------------------------------------------------------------------------------- errors

// The stack of an error as V8 writes it, without the frames of this file and those below the call that evaluates code.
function stackOf(error, frames) {
	const ours = frames.findIndex((frame) => frame.getFileName() === 'node:inspector');
	let text = '<error>';
	try {
		text = Error.prototype.toString.call(error);
	} catch {} // its name or message is no text
	const kept = (ours < 0 ? frames : frames.slice(0, ours)).filter((frame) => frame.getFileName() !== __filename);
	return [text, ...kept].join('\n    at ');
}

// The text of an exception as Node prints one that is not caught, without frames of the runner.
function describeError(error, details, { file, lines }) {
	const isError = util.types.isNativeError(error);
	const text = isError ? util.inspect(error) : `Uncaught ${util.inspect(error)}`;
	const frame = text.match(new RegExp(`(${WORK.replace(/[^\w/]/g, '\\$&')}/[^():\n]+):(\\d+):(\\d+)`));
	const place = frame ? { file: frame[1], line: Number(frame[2]), column: Number(frame[3]) } :
		details ? { file, line: Math.min(details.lineNumber + 1, lines.length), column: details.columnNumber + 1 } : { file: null, line: null };
	const source = place.file === file && lines[place.line - 1];
	const head = source ? `${place.file}:${place.line}\n${source}\n${' '.repeat(Math.min(place.column - 1, source.length))}^\n\n` : '';
	const traceback = `${head}${text}\n`;
	standardError.write(traceback);
	return { type: isError ? String(error.name) : kindOf(error), message: shortened(isError ? String(error.message) : util.inspect(error), TEXT_MOST),
		file: place.file, line: place.line, traceback: shortened(traceback, 4 * TEXT_MOST) };
}

// --------------------------------------------------------------------------------------- executions

class Exit {
	constructor(code) {
		this.code = code;
	}
}

const session = new inspector.Session();
const watchdog = process.binding('contextify');
const turn = new vm.Script(`globalThis[Symbol.for('atoll.session')].turn()`);
const self = {};
let current = null; // the running execution
let lastExitCode = 0;
let parser;

// Replaces `return` outside of functions, and import(), by calls.
function adapt(code) {
	if (!/\breturn\b|\bimport\s*\(/.test(code))
		return code;
	if (!parser) {
		const exports = {};
		new Function('exports', 'module', 'define', process.binding('natives')['internal/deps/acorn/acorn/dist/acorn'])(exports, { exports });
		parser = exports;
	}
	const edits = [];
	const visit = (node, inFunction) => {
		if (Array.isArray(node))
			return node.forEach((item) => visit(item, inFunction));
		if (typeof node?.type !== 'string')
			return;
		if (node.type === 'ReturnStatement' && !inFunction)
			edits.push([node.start, node.start + 6, 'throw globalThis[Symbol.for("atoll.session")].returned('], [node.argument?.end ?? node.start + 6, node.end, ');']);
		if (node.type === 'ImportExpression')
			edits.push([node.start, node.start + 6, 'globalThis[Symbol.for("atoll.session")].load']);
		Object.values(node).forEach((item) => visit(item, inFunction || /Function/.test(node.type) || node.type === 'StaticBlock'));
	};
	try {
		visit(parser.parse(code, { ecmaVersion: 'latest', allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true, allowHashBang: true }));
	} catch {
		return code; // V8 will tell what is wrong
	}
	for (const [start, end, text] of edits.sort((a, b) => b[0] - a[0]))
		code = code.slice(0, start) + text + code.slice(end);
	return code;
}

// The objects behind what the inspector describes.
function fetch(remote) {
	if (!remote.objectId)
		return remote.unserializableValue ? vm.runInThisContext(`(${remote.unserializableValue})`) : remote.value;
	session.post('Runtime.callFunctionOn', { objectId: remote.objectId, arguments: [{ objectId: remote.objectId }],
		functionDeclaration: 'function (value) { globalThis[Symbol.for("atoll.session")].fetched = value; }' });
	const value = self.fetched;
	self.fetched = undefined;
	return value;
}

function evaluate(execution, code) {
	// The answer waits until SIGINT can no longer end this function.
	session.post('Runtime.evaluate', { expression: `${adapt(code)}\n//# sourceURL=${execution.file}`, replMode: true, objectGroup: 'cell' },
		(error, answer) => setImmediate(conclude, execution, error, answer));
}

function conclude(execution, error, answer) {
	if (execution !== current)
		return;
	const details = answer?.exceptionDetails;
	if (error)
		finish(execution, { error: new Error(error.message), failed: true });
	else if (details)
		settle(execution, fetch(details.exception), details);
	else
		finish(execution, { value: fetch(answer.result) });
}

// An exception has left the code.
function settle(execution, error, details) {
	if (error instanceof Exit)
		finish(execution, { exitCode: error.code });
	else if (error?.[RETURNED])
		finish(execution, { value: error.value });
	else
		finish(execution, { error, details, failed: true });
}

// Calls a function that SIGINT may end, and goes on with the promises that need no event. An exception ends the execution.
function attempt(work) {
	let failure;
	held = [];
	self.turn = () => {
		work();
		runTicks.call(process);
	};
	try {
		turn.runInThisContext({ breakOnSigint: true });
	} catch (error) {
		failure = { error };
	}
	const lines = held.join('');
	held = null;
	if (lines)
		write(lines);
	if (failure?.error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
		interrupt();
	else if (failure && current)
		settle(current, failure.error);
}

function execute({ n, file, code, host_functions: names, globals, stdin, value_most: valueMost = 0 }) {
	const execution = current = { n, valueMost, outputs: 0, file: file ?? path.join(WORK, `cell-${n}.js`), lines: code.split('\n') };
	watchdog.startSigintWatchdog();
	watchdog.stopSigintWatchdog(); // drops signals that have come before
	execution.timer = setInterval(() => watchdog.watchdogHasPendingSigint() && interrupt(), LOOK_UP_MS);
	attempt(() => {
		setInput(stdin);
		bindHost((names ?? []).map((item) => item.name ?? item));
		for (const [name, value] of Object.entries(globals ?? {}))
			globalThis[name] = untag(value);
		evaluate(execution, code);
	});
}

function interrupt() {
	if (!current)
		return;
	standardError.write('KeyboardInterrupt\n');
	finish(current, { described: { type: 'KeyboardInterrupt', message: '', file: null, line: null, traceback: 'KeyboardInterrupt\n' }, interrupted: true, exitCode: 1 });
}

// A value that is too large for the result: its JSON text in pieces, if so much is kept; its size.
function sendWhole(line, execution) {
	const bytes = Buffer.from(line);
	for (let at = 0; bytes.length <= execution.valueMost && at < bytes.length; at += VALUE_PIECE)
		send({ op: 'value', n: execution.n, base64: bytes.toString('base64', at, at + VALUE_PIECE) });
	return bytes.length;
}

function describeValue(value, execution) {
	if (value === undefined)
		return {};
	const data = rich(value);
	if (Object.keys(data).length)
		publish(value, data);
	const found = { value_type: kindOf(value) };
	let line, fits = false;
	try {
		partsMost = Infinity;
		const tagged = tag(value);
		line = JSON.stringify(tagged);
		fits = parts <= PARTS_MOST && Buffer.byteLength(line) <= VALUE_MOST;
		if (fits)
			found.value = tagged;
	} catch {} // the text has to do
	partsMost = PARTS_MOST;
	if (fits && Buffer.byteLength(line) > VALUE_WITH_REPR)
		return found;
	const text = util.inspect(value);
	found.value_repr = shortened(text, REPR_MOST);
	if (!fits && (line || text.length > REPR_MOST))
		found.value_bytes = sendWhole(line ?? JSON.stringify(text.toWellFormed()), execution);
	return found;
}

function finish(execution, end) {
	if (execution !== current)
		return;
	let described = {};
	if (!end.failed && end.exitCode === undefined) {
		try {
			described = describeValue(end.value, execution);
		} catch (error) {
			end = { error, failed: true };
		}
	}
	const error = end.failed ? describeError(end.error, end.details, execution) : end.described ?? null;
	const exitCode = end.exitCode ?? (error ? 1 : Number(process.exitCode ?? 0) & 255);
	process.exitCode = undefined;
	lastExitCode = exitCode;
	current = null;
	clearInterval(execution.timer);
	calls.clear();
	session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
	const done = { op: 'done', n: execution.n, ...described, error, exit_code: exitCode, interrupted: Boolean(end.interrupted) };
	flush(() => send(done));
}

// Calls the function when all output is written. A stream that a termination has left half-way is not waited for.
function flush(then, tries = FLUSH_TRIES) {
	if (tries > 0 && [process.stdout, process.stderr].some((stream) => stream.writableLength > 0))
		setTimeout(flush, 1, then, tries - 1);
	else
		then();
}

// -------------------------------------------------------------------------------------------- start

function start() {
	fs.rmSync(__filename, { force: true });
	hideInput();
	session.connect();
	Object.assign(self, { returned: (value) => ({ [RETURNED]: true, value }), load: (name) => import(name) });
	Object.defineProperty(globalThis, SELF, { value: self });
	// Node's own console would hand every message to the inspector, which keeps them.
	globalThis.console = new Console({ stdout: sink(1), stderr: standardError, ignoreErrors: false });
	Error.prepareStackTrace = stackOf;
	const main = new Module(path.join(WORK, 'cell.js'));
	const require = Object.assign(Module.createRequire(main.id), { main });
	Object.assign(main, { filename: main.id, paths: require.resolve.paths('x') });
	Object.assign(globalThis, { require, module: main, exports: main.exports, __filename: main.id, __dirname: WORK, display, HostError });
	process.argv.length = 1;
	process.exit = (code) => {
		throw new Exit(Number(code ?? process.exitCode ?? 0) & 255);
	};
	watchdog.startSigintWatchdog();
	process.on('uncaughtException', (error) => {
		if (current)
			settle(current, error);
		else if (!(error instanceof Exit))
			describeError(error, null, { lines: [] });
	});
	write('{"op":"ready"}\n');
}

start();
