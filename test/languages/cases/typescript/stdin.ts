import { readFileSync } from 'fs';

const text: string = readFileSync(0, 'utf8');
console.log('got: ' + text.trimEnd());
