// SPDX-License-Identifier: Apache-2.0
// The tools of a JavaScript session: values that cross the channel, and files. The front joins this file and session.js, in this order, to the one
// program that a session runs.
'use strict';

const childProcess = require('child_process');
const { Console } = require('console');
const fs = require('fs');
const inspector = require('inspector');
const Module = require('module');
const net = require('net');
const path = require('path');
const { Readable } = require('stream');
const { EINVAL, EISDIR } = require('os').constants.errno;
const util = require('util');
const vm = require('vm');

const LINE_MOST = 32 << 20; // bytes of one output, and of a file that is read
const VALUE_MOST = 8 << 20; // bytes of a value inside a result; a larger one comes in pieces
const VALUE_PIECE = 3 << 18; // bytes of such a piece
const VALUE_WITH_REPR = 64 << 10; // bytes of a value that is sent with its text
const REPR_MOST = 1 << 20; // characters of a text that stands for a value
const ARGUMENTS_MOST = 1 << 20; // bytes of the arguments of a host call
const [TEXT_MOST, OUTPUTS_MOST, ENTRIES_MOST] = [64 << 10, 100, 10000];
const [DEPTH_MOST, PARTS_MOST, INTEGER_MOST] = [60, 250000, 2 ** 63]; // of JSON that the front reads
const [LOOK_UP_MS, FLUSH_TRIES] = [20, 5000];
const WORK = process.cwd();
const SELF = Symbol.for('atoll.session'); // what rewritten code calls
const RETURNED = Symbol('returned');
const { _tickCallback: runTicks } = process;
const { setImmediate } = globalThis;
const { readSync } = fs; // the program sees another one

// ------------------------------------------------------------------------------------------ values

const kindOf = (value) => (value === null ? 'null' : typeof value === 'object' ? value.constructor?.name || 'Object' : typeof value);

function tagNumber(value) {
	if (Number.isInteger(value) && Math.abs(value) >= INTEGER_MOST)
		return { $int: String(BigInt(value)) };
	if (Number.isFinite(value))
		return value;
	return { $float: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' };
}

const OBJECT_TAGS = [
	[Array.isArray, (value, depth) => Array.from(value, (item) => tag(item, depth))],
	[(value) => value instanceof Uint8Array, (value) => ({ $bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') })],
	[(value) => value instanceof ArrayBuffer, (value) => ({ $bytes: Buffer.from(value).toString('base64') })],
	[(value) => value instanceof Date && !Number.isNaN(value.getTime()), (value) => ({ $datetime: value.toISOString() })],
	[(value) => value instanceof Set, (value, depth) => ({ $set: Array.from(value, (item) => tag(item, depth + 1)) })],
	[(value) => value instanceof Map, tagPairs],
	[(value) => [Object.prototype, null].includes(Object.getPrototypeOf(value)), tagObject],
];

function tagPairs(pairs, depth) {
	return { $dict: Array.from(pairs, ([key, item]) => (parts++, [tag(key, depth + 2), tag(item, depth + 2)])) };
}

function tagObject(value, depth) {
	const pairs = Object.entries(value).filter(([, item]) => item !== undefined);
	if (pairs.length === 1 && pairs[0][0].startsWith('$') || pairs.some(([key]) => key.includes('\0') || !key.isWellFormed()))
		return tagPairs(pairs, depth);
	// A key named __proto__ must not become the prototype.
	return Object.fromEntries(pairs.map(([key, item]) => [key, tag(item, depth)]));
}

let parts = 0; // of the value that is being tagged
let partsMost = PARTS_MOST; // that it may have

function tag(value, depth = 0) {
	parts = depth === 0 ? 0 : parts + 1;
	if (depth > DEPTH_MOST || parts > partsMost)
		throw new TypeError(`value has more than ${DEPTH_MOST} levels or ${PARTS_MOST} parts`);
	if (value === undefined || value === null)
		return null;
	if (typeof value === 'boolean' || typeof value === 'string' && value.isWellFormed())
		return value;
	if (typeof value === 'number')
		return tagNumber(value);
	if (typeof value === 'bigint')
		return { $int: String(value) };
	const found = typeof value === 'object' && OBJECT_TAGS.find(([is]) => is(value));
	if (found)
		return found[1](value, depth + 1);
	throw new TypeError(`${kindOf(value)} cannot cross the boundary of the sandbox`);
}

const UNTAGS = {
	$bytes: (text) => Buffer.from(text, 'base64'),
	$tuple: (items) => items.map(untag),
	$set: (items) => new Set(items.map(untag)),
	$frozenset: (items) => new Set(items.map(untag)),
	$complex: ([re, im]) => ({ re: untag(re), im: untag(im) }),
	$datetime: (text) => new Date(text),
	$date: (text) => new Date(text),
	$time: (text) => text,
	$timedelta: (seconds) => seconds,
	$decimal: (text) => text,
	$float: (text) => ({ nan: NaN, inf: Infinity, '-inf': -Infinity })[text],
	$int: (text) => BigInt(text),
	$dict: (pairs) => new Map(pairs.map(([key, value]) => [untag(key), untag(value)])),
};

function untag(value) {
	if (Array.isArray(value))
		return value.map(untag);
	if (value === null || typeof value !== 'object')
		return value;
	const keys = Object.keys(value);
	if (keys.length === 1 && keys[0].startsWith('$')) {
		if (!Object.hasOwn(UNTAGS, keys[0]))
			throw new TypeError(`unknown tag ${keys[0]}`);
		return UNTAGS[keys[0]](value[keys[0]]);
	}
	return Object.fromEntries(keys.map((key) => [key, untag(value[key])]));
}

const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most)}… (${text.length} characters)`).toWellFormed();

// -------------------------------------------------------------------------------------------- files

const KINDS = [['isFile', 'file'], ['isDirectory', 'directory'], ['isSymbolicLink', 'link']];

function entryOf(full) {
	const found = fs.lstatSync(full);
	const kind = KINDS.find(([is]) => found[is]());
	return kind && { path: path.relative(WORK, full), size: found.size, type: kind[1], mtime: found.mtimeMs / 1000 };
}

function listed(full, entries) {
	for (const name of fs.readdirSync(full).sort()) {
		const entry = entries.length < ENTRIES_MOST && entryOf(path.join(full, name));
		if (entry)
			entries.push(entry);
		if (entry?.type === 'directory')
			listed(path.join(full, name), entries);
	}
	return entries;
}

const FILE_CALLS = {
	list(full) {
		const entry = entryOf(full);
		return { entries: entry?.type === 'directory' ? listed(full, []) : entry ? [entry] : [] };
	},
	read(full, { offset, size }) {
		const found = fs.statSync(full);
		const errno = found.isDirectory() ? EISDIR : !found.isFile() ? EINVAL : 0;
		if (errno)
			throw { errno: -errno };
		const piece = Buffer.alloc(Math.max(0, Math.min(size, found.size - offset)));
		const fd = fs.openSync(full, 'r');
		const length = readSync(fd, piece, 0, piece.length, offset);
		fs.closeSync(fd);
		return { base64: piece.toString('base64', 0, length), size: found.size };
	},
	write(full, { base64, offset }) {
		fs.mkdirSync(path.dirname(full), { recursive: true });
		const fd = fs.openSync(full, offset ? 'r+' : 'w');
		const bytes = Buffer.from(base64, 'base64');
		try {
			for (let at = 0; at < bytes.length;)
				at += fs.writeSync(fd, bytes, at, bytes.length - at, offset + at);
		} finally {
			fs.closeSync(fd);
		}
		return {};
	},
	remove(full) {
		fs.rmSync(full, { recursive: true });
		return {};
	},
};

function answerFile(message) {
	const answer = { op: 'file', n: message.n, error: null };
	try {
		return { ...answer, ...FILE_CALLS[message.op](path.join(WORK, message.path), message) };
	} catch (error) {
		const [name, text] = util.getSystemErrorMap().get(error.errno) ?? ['EIO', String(error.message)];
		return { ...answer, error: name, message: text };
	}
}

