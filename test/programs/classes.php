<?php
abstract class Model { protected static array $made = []; public static function make(string ...$names): static { $o = new static; foreach ($names as $n) static::$made[] = $o->label($n); return $o; } abstract protected function label(string $n): string; public function __get($k) { return "magic $k"; } public static function all(): array { return static::$made; } }
trait Loud { public function shout(string $s): string { return strtoupper($s) . '!'; } }
class User extends Model { use Loud; protected function label(string $n): string { return $this->shout($n); } }
$u = User::make('ada', 'bo');
echo implode(' ', User::all()), ' ', $u->anything, "\n";
class Temp implements ArrayAccess, IteratorAggregate, Countable { private array $d = []; public function offsetExists(mixed $o): bool { return isset($this->d[$o]); } public function offsetGet(mixed $o): mixed { return $this->d[$o] ?? null; } public function offsetSet(mixed $o, mixed $v): void { $this->d[$o] = $v; } public function offsetUnset(mixed $o): void { unset($this->d[$o]); } public function getIterator(): Iterator { return new ArrayIterator($this->d); } public function count(): int { return count($this->d); } }
$t = new Temp; $t['a'] = 1; $t['b'] = 2; foreach ($t as $k => $v) echo "$k$v "; echo count($t), isset($t['c']) ? 'set' : 'unset', "\n";
$compose = fn(callable ...$f) => fn($x) => array_reduce($f, fn($a, $g) => $g($a), $x);
echo $compose('strrev', 'ucfirst', fn($s) => $s . '?')('abc'), ' ', number_format(1234567.891, 2), ' ', str_pad('7', 3, '0', STR_PAD_LEFT), "\n";
list('x' => $x, 'y' => [, $y]) = ['x' => 1, 'y' => [2, 3]]; echo $x + $y, ' ', 10 <=> 5, ' ', 7 % 3, ' ', 2 ** 10, ' ', "5" + "5.5", "\n";
throw new LogicException('nobody catches this');
