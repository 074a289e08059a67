// SPDX-License-Identifier: Apache-2.0
// Calls one method of a class that a tool file defines, for `atoll run --invoke`.
//
//     invoke.js TOOL CLASS METHOD     parameters in .atoll-params.json, answer in .atoll-invoke.json
//
// The class is taken from module.exports, or from the file's own top level. The method gets the
// parameters as one object; a promise is awaited. Answer and exit status as in runners/python/invoke.py.
'use strict';

const fs = require('fs');
const Module = require('module');

const WORK = '/sandbox';

// Runs the file as a CommonJS module that also hands out the class by name.
function load(path, className) {
	const tool = new Module(path, module);
	tool.filename = path;
	tool.paths = Module._nodeModulePaths(WORK);
	const tail = `\n;if (typeof ${className} !== 'undefined' && !(module.exports || {}).${className})` +
		` module.exports = { ...module.exports, ${className} };`;
	tool._compile(fs.readFileSync(path, 'utf8') + tail, path);
	const found = tool.exports[className] || (tool.exports.name === className ? tool.exports : undefined);
	if (typeof found !== 'function')
		throw new ReferenceError(`class ${className} is not defined`);
	return found;
}

async function call(path, className, methodName) {
	if (!/^[A-Za-z_$][\w$]*$/.test(className))
		throw new ReferenceError(`'${className}' is not a class name`);
	const params = JSON.parse(fs.readFileSync(`${WORK}/.atoll-params.json`, 'utf8'));
	const ToolClass = load(path, className);
	const tool = new ToolClass({ config: {} });
	if (typeof tool[methodName] !== 'function')
		throw new TypeError(`'${className}' has no method '${methodName}'`);
	return tool[methodName](params);
}

function failure(error) {
	const known = error instanceof Error;
	return {
		result: null,
		error: known ? error.message : String(error),
		type: known ? error.name : typeof error,
		traceback: known ? error.stack : null,
	};
}

function encode(answer) {
	try {
		if (['function', 'symbol'].includes(typeof answer.result))
			throw new TypeError(`a ${typeof answer.result} has no JSON form`);
		return JSON.stringify(answer);
	} catch (error) {
		return JSON.stringify({
			...failure(error),
			result: `Result of type ${typeof answer.result} is not JSON serializable.`,
			error: `Non-serializable result. Serialization error: ${error.message}`,
		});
	}
}

async function main() {
	const [path, className, methodName] = process.argv.slice(2, 5);
	let answer;
	try {
		const result = await call(path, className, methodName);
		answer = { result: result === undefined ? null : result, error: null, type: null, traceback: null };
	} catch (error) {
		answer = failure(error);
	}
	const text = encode(answer);
	fs.writeFileSync(`${WORK}/.atoll-invoke.json`, text);
	process.exitCode = JSON.parse(text).error === null ? 0 : 1;
}

main();
