const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
await sleep(1);
const values: number[] = await Promise.all([1, 2, 3].map(async n => { await sleep(n); return n * 10; }));
console.log(values);
export {};
