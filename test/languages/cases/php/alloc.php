<?php
$block = str_repeat('x', 64 << 20);
echo 'allocated ' . strlen($block) . "\n";
