# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import abc
import contextlib
import dataclasses
import enum
import functools
import itertools
import typing

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

@dataclasses.dataclass(order=True, frozen=True)
class Point:
    x: int
    y: int = 0

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...

class Square(Shape):
    def __init__(self, side): self.side = side
    def area(self): return self.side ** 2

T = typing.TypeVar("T")

class Stack(typing.Generic[T]):
    def __init__(self): self.items: list[T] = []
    def push(self, item: T): self.items.append(item)
    def __iter__(self): return iter(reversed(self.items))

@contextlib.contextmanager
def noted(name):
    print("enter", name)
    try:
        yield name.upper()
    finally:
        print("leave", name)

with noted("a") as upper:
    print(upper, Colour(2), sorted([Point(2), Point(1, 5)]), Square(3).area())
stack = Stack[int]()
for n in itertools.islice(itertools.count(5, 5), 3):
    stack.push(n)
print(list(stack), functools.reduce(lambda a, b: a * b, stack))
match {"kind": "move", "to": [1, 2]}:
    case {"kind": "move", "to": [x, y]}:
        print("moved", x, y)
try:
    Shape()
except TypeError as problem:
    print("abstract" in str(problem))
