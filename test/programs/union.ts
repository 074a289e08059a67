type Event = { kind: 'add'; n: number } | { kind: 'reset' };
const reduce = (state: number, e: Event): number => { switch (e.kind) { case 'add': return state + e.n; case 'reset': return 0; } };
console.log(([{ kind: 'add', n: 2 }, { kind: 'reset' }, { kind: 'add', n: 5 }] as Event[]).reduce(reduce, 0));
abstract class Animal { constructor(protected readonly name: string) {} abstract sound(): string; toString(): string { return `${this.name}: ${this.sound()}`; } }
class Cat extends Animal { sound(): string { return 'meow'; } }
const zoo: Array<Animal> = [new Cat('Tom')]; console.log(zoo.map(String).join());
function isText(x: unknown): x is string { return typeof x === 'string'; }
const mixed: unknown[] = [1, 'two', null, 'four']; console.log(mixed.filter(isText).map(s => s.length));
type Keys<T> = { readonly [K in keyof T]?: T[K] }; const p: Keys<{ a: number }> = {}; console.log(p?.a ?? 'absent');
namespace Util { export const twice = (n: number): number => n * 2; } console.log(Util.twice(21));
const tuple: [string, number] = ['x', 1]; const [s, n]: [string, number] = tuple; console.log(s.repeat(3), n);
process.exitCode = 3;
