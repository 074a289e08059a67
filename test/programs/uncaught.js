process.on('exit', code => console.log('leaving with', code));
console.log('before');
throw new RangeError('nobody catches this');
