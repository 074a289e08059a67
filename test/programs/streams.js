const { Readable, Transform, pipeline } = require('stream');
const { createGzip, createGunzip } = require('zlib');
const upper = new Transform({ transform(chunk, _, done) { done(null, String(chunk).toUpperCase()); } });
const pieces = [];
pipeline(Readable.from(['a', 'b', 'c'].map(x => x.repeat(10000))), upper, createGzip(), createGunzip(), async function* (source) {
  for await (const piece of source) pieces.push(piece.length);
}, error => { console.log(error ?? 'piped', pieces.reduce((a, b) => a + b)); process.stdout.write('x'.repeat(200000) + '\n'); });
const util = require('util');
console.log(util.inspect({ a: { b: { c: { d: 1 } } } }, { depth: 1 }), util.format('%s %d %j', 'x', 4, { y: 1 }), util.types.isDate(new Date()));
console.log(Buffer.from('añ').toString('base64'), Buffer.alloc(3, 1), new TextDecoder().decode(new Uint8Array([104, 105])), structuredClone(new Map([[1, { a: 1 }]])));
const vm = require('vm');
console.log(vm.runInNewContext('x + 1', { x: 41 }), new URL('http://a.b/c?d=e').searchParams.get('d'), require('os').EOL === '\n');
