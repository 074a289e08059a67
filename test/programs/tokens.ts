type Token = { type: 'num'; value: number } | { type: 'op'; value: '+' | '-' | '*' | '/' | '(' | ')' };
function* tokens(text: string): Generator<Token> {
  for (const m of text.matchAll(/\d+(\.\d+)?|[-+*\/()]/g))
    yield /\d/.test(m[0]) ? { type: 'num', value: Number(m[0]) } : { type: 'op', value: m[0] as '+' };
}
class Parser {
  private list: Token[];
  private at = 0;
  constructor(text: string) { this.list = [...tokens(text)]; }
  private take(...ops: string[]): string | null { const t = this.list[this.at]; if (t?.type === 'op' && ops.includes(t.value)) { this.at++; return t.value; } return null; }
  private atom(): number { if (this.take('(')) { const v = this.sum(); this.take(')'); return v; } if (this.take('-')) return -this.atom(); const t = this.list[this.at++]; if (t?.type !== 'num') throw new SyntaxError('number expected'); return t.value; }
  private product(): number { let v = this.atom(); for (let op; (op = this.take('*', '/')); ) v = op === '*' ? v * this.atom() : v / this.atom(); return v; }
  sum(): number { let v = this.product(); for (let op; (op = this.take('+', '-')); ) v = op === '+' ? v + this.product() : v - this.product(); return v; }
}
for (const text of ['1 + 2 * 3', '(1+2)*3/-4', '2 *']) { try { console.log(text, '=', new Parser(text).sum()); } catch (e) { console.log((e as Error).message); } }
