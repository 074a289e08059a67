const { readFileSync } = require('fs');
for (const word of process.argv.slice(2))
	console.log(word);
console.log('got: ' + readFileSync(0, 'utf8').trimEnd());
console.log(process.env.GREETING);
process.stdout.write(readFileSync('data/input.txt', 'utf8'));
process.exit(7);
