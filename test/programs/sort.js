const quick = xs => xs.length < 2 ? xs : [...quick(xs.slice(1).filter(x => x < xs[0])), xs[0], ...quick(xs.slice(1).filter(x => x >= xs[0]))];
console.log(quick([5, 3, 9, 1, 5, 7]));
const memo = new Map(), ways = n => n < 2 ? 1n : memo.get(n) ?? (memo.set(n, ways(n - 1) + ways(n - 2)), memo.get(n));
console.log(String(ways(300)));
const grid = Array.from({ length: 5 }, (_, y) => Array.from({ length: 5 }, (_, x) => (x * y) % 3));
console.log(grid.map(r => r.join('')).join('\n'));
console.table([{ a: 1, b: 'x' }, { a: 2, b: 'y' }]);
console.log([1, 2, 3, 4].reduce((m, x) => ({ ...m, [x % 2 ? 'odd' : 'even']: [...(m[x % 2 ? 'odd' : 'even'] ?? []), x] }), {}));
console.log(Number.MAX_SAFE_INTEGER, 0.1 + 0.2, parseInt('12px'), [10, 9, 1].sort(), isNaN('x'), JSON.stringify({ d: new Date(0), u: undefined }));
