process.stdout.write(require('fs').readFileSync('data/input.txt', 'utf8'));
