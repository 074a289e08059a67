<?php
echo getenv('GREETING') . "\n";
