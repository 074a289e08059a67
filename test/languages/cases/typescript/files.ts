import { readFileSync } from 'fs';

process.stdout.write(readFileSync('data/input.txt', 'utf8'));
