import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
await writeFile('note.txt', 'top level await');
console.log(await readFile('note.txt', 'utf8'), createHash('md5').update('a').digest('hex'));
console.log(basename(import.meta.url), typeof require);
export default 1;
