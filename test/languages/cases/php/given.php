<?php
foreach (array_slice($argv, 1) as $word) {
    echo "$word\n";
}
echo 'got: ' . fgets(STDIN) . getenv('GREETING') . "\n";
readfile('data/input.txt');
exit(7);
