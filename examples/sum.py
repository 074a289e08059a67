# Reads numbers, prints their sum: atoll run examples/sum.py --tests examples/sum.tests.json
import sys

print(sum(int(word) for word in sys.stdin.read().split()))
