<?php
declare(strict_types=1);
interface Shape { public function area(): float; }
final class Square implements Shape { public function __construct(private float $side) {} public function area(): float { return $this->side ** 2; } }
enum Suit: string { case Hearts = 'H'; case Spades = 'S'; public function label(): string { return ucfirst(strtolower($this->name)); } }
function gen(int $n): Generator { for ($i = 0; $i < $n; $i++) yield $i => $i * $i; }
echo (new Square(3))->area(), ' ', Suit::from('S')->label(), "\n";
foreach (gen(3) as $k => $v) echo "$k=$v ";
echo "\n", json_encode(['a' => [1, 2.5, null], 'ü' => true], JSON_UNESCAPED_UNICODE | JSON_PRETTY_PRINT), "\n";
echo match (true) { 5 > 3 => 'yes', default => 'no' }, ' ', implode(',', array_map(fn($x) => $x * 2, array_filter([1, 2, 3, 4], fn($x) => $x % 2 === 0))), "\n";
usort($people = [['n' => 'b'], ['n' => 'a']], fn($x, $y) => $x['n'] <=> $y['n']);
printf("%05.2f|%'*10s|%b\n", 3.14159, 'pad', 10);
echo preg_replace_callback('/\d+/', fn($m) => (string)($m[0] * 2), '3 and 12'), ' ', strrev('abc'), ' ', str_contains('hay', 'a') ? 'in' : 'out', "\n";
echo (new DateTime('2024-02-29', new DateTimeZone('UTC')))->modify('+1 year')->format('Y-m-d'), "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo get_class($e), "\n"; } finally { echo "done\n"; }
$a = ['x' => ['y' => 1]]; ['x' => ['y' => $y]] = $a; echo $y, ' ', $a['z'] ?? 'none', "\n";
static fn() => 1;
echo serialize([1, 'a']), ' ', md5('a'), ' ', PHP_VERSION_ID > 80000 ? 'eight' : 'old', "\n";
exit(3);
