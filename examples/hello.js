// atoll run examples/hello.js -- Ada
const who = process.argv[2] || 'world';
console.log(`Hello, ${who}, from Node.js ${process.version}.`);
