# SPDX-License-Identifier: Apache-2.0
import decimal
import fractions
import math
import random

decimal.getcontext().prec = 50
print(decimal.Decimal(2).sqrt(), fractions.Fraction(1, 3) + fractions.Fraction(1, 6))
print(math.comb(50, 25), math.isqrt(10 ** 20), 2 ** 200, divmod(-7, 3), round(2.5), 0.1 + 0.2)
random.seed(7)
print(random.sample(range(100), 5), random.choice("abc"), f"{random.random():.6f}")
print(float("inf") > 1, float("nan") != float("nan"), int("ff", 16), bin(10), (255).to_bytes(2, "big"))
