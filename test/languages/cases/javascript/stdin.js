const text = require('fs').readFileSync(0, 'utf8');
console.log('got: ' + text.trimEnd());
