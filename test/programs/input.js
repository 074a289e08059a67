const readline = require('readline');
const rl = readline.createInterface({ input: process.stdin });
let total = 0;
rl.on('line', line => total += Number(line));
rl.on('close', () => { console.log(process.argv.slice(2), total); console.error('to stderr'); process.exit(6); });
