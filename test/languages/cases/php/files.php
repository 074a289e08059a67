<?php
readfile('data/input.txt');
