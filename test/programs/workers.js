const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (isMainThread) {
  const shared = new SharedArrayBuffer(4);
  const start = n => new Promise((resolve, reject) => {
    const w = new Worker(__filename, { workerData: { n, shared } });
    w.on('message', resolve);
    w.on('error', reject);
  });
  Promise.all([1, 2, 3].map(start)).then(all => console.log(all, Atomics.load(new Int32Array(shared), 0)));
} else {
  Atomics.add(new Int32Array(workerData.shared), 0, workerData.n);
  parentPort.postMessage(workerData.n ** 2);
}
