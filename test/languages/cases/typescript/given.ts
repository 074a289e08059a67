import { readFileSync } from 'fs';
const words: string[] = process.argv.slice(2);
for (const word of words)
	console.log(word);
const text: string = readFileSync(0, 'utf8');
console.log('got: ' + text.trimEnd());
const greeting: string | undefined = process.env.GREETING;
console.log(greeting);
process.stdout.write(readFileSync('data/input.txt', 'utf8'));
const code: number = 7;
process.exit(code);
