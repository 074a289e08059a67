class Account {
  #balance = 0n;
  static made = 0;
  constructor() { Account.made++; }
  add(n) { this.#balance += BigInt(n); return this; }
  get balance() { return this.#balance; }
}
console.log(new Account().add(2 ** 53).add(1).balance, Account.made);
const { a, ...rest } = { a: 1, b: 2, c: 3 };
console.log(a, rest, [..."añ🎉"].length, `${[1, 2, 3].map(x => x * 2)}`);
console.log(new Intl.NumberFormat('de-DE').format(1234567.89), new Date(0).toISOString(), new Date(Date.UTC(2024, 1, 29)).toLocaleDateString('en-GB', { timeZone: 'Asia/Tokyo', dateStyle: 'full' }));
console.log('2024-05-06'.match(/(?<y>\d+)-(?<m>\d+)/u).groups.m, [3, 1, 2].toString(), Object.entries({ x: 1 }));
function* fib() { let [x, y] = [0, 1]; for (;;) { yield x; [x, y] = [y, x + y]; } }
const it = fib();
console.log(Array.from({ length: 10 }, () => it.next().value), new Map([['k', new Set([1, 1, 2])]]));
const depth = n => n === 0 ? 0 : 1 + depth(n - 1);
console.log(depth(5000), [1, [2, [3]]].flat(Infinity), null ?? 'default', typeof Symbol());
try { null.x } catch (e) { console.log(e.name) }
label: for (const i of [1, 2, 3]) { for (const j of [1, 2]) { if (i === 2) continue label; if (j === 2) break; console.log(i, j); } }
