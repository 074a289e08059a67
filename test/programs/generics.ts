interface Shape { kind: string; area(): number }
class Circle implements Shape { readonly kind = 'circle'; constructor(private r: number) {} area() { return Math.PI * this.r ** 2; } }
class Box<T extends { toString(): string }> { private items: T[] = []; add(item: T): this { this.items.push(item); return this; } get text(): string { return this.items.map(String).join('|'); } }
enum Level { Low = 1, High = 10 }
type Result<T> = { ok: true; value: T } | { ok: false; error: string };
function parse(s: string): Result<number> { const n = Number(s); return Number.isNaN(n) ? { ok: false, error: `bad: ${s}` } : { ok: true, value: n }; }
const first = <T,>(xs: readonly T[]): T | undefined => xs[0];
console.log(new Circle(2).area().toFixed(3), new Box<number>().add(1).add(2).text, Level[10], Level.Low);
for (const s of ['12', 'x']) { const r = parse(s); console.log(r.ok ? r.value : r.error); }
console.log(first([3, 4]), first([]), { ...{ a: 1 } as Record<string, number> });
