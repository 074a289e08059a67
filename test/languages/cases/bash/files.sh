cat data/input.txt
