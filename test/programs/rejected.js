async function work() { await null; throw new TypeError('in a promise'); }
console.log('started');
work();
