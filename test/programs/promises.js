const { setTimeout: sleep } = require('timers/promises');
const { EventEmitter, once } = require('events');
async function* count(n) { for (let i = 0; i < n; i++) { await sleep(1); yield i; } }
(async () => {
  for await (const i of count(3)) console.log(i);
  console.log(await Promise.allSettled([sleep(1, 'a'), Promise.reject(new Error('b')), 3]).then(r => r.map(x => x.value ?? x.reason?.message)));
  const e = new EventEmitter();
  setImmediate(() => e.emit('ready', 42));
  console.log(await once(e, 'ready'));
  console.log(await Promise.race([sleep(50, 'slow'), sleep(1, 'fast')]));
  process.nextTick(() => console.log('tick'));
  queueMicrotask(() => console.log('micro'));
  await null;
  process.exitCode = 4;
})();
