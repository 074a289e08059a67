<?php
file_put_contents('a.csv', "name,n\nx,1\ny,2\n");
$h = fopen('a.csv', 'r');
$head = fgetcsv($h);
$sum = 0;
while ($row = fgetcsv($h)) $sum += (int) array_combine($head, $row)['n'];
echo $sum, "\n";
mkdir('d/e', 0755, true);
touch('d/e/f');
foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator('d', FilesystemIterator::SKIP_DOTS)) as $f) echo $f, "\n";
echo trim(shell_exec('echo shell')), "\n";
$p = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
fwrite($pipes[0], 'through'); fclose($pipes[0]);
echo stream_get_contents($pipes[1]), ' ', proc_close($p), "\n";
echo $argv[1] ?? 'none', ' ', array_sum(array_map('intval', file('php://stdin'))), "\n";
$t = tempnam(sys_get_temp_dir(), 'x'); file_put_contents($t, 'abc', FILE_APPEND | LOCK_EX); echo filesize($t), "\n"; unlink($t);
fwrite(STDERR, "to stderr\n");
