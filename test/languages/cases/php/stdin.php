<?php
echo 'got: ' . fgets(STDIN);
