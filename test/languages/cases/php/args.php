<?php
foreach (array_slice($argv, 1) as $word) {
    echo "$word\n";
}
