# SPDX-License-Identifier: Apache-2.0
"""Values that cross the boundary of a sandbox: JSON, and objects of one key that begins with ``$`` for what JSON lacks.

Arguments and results of host functions, globals and an execution's value travel so. What a sandbox sends is data: nothing is unpickled,
evaluated or imported, and a tag whose content makes no sense stays the object that it is.

==================  ==================================  ==============
tag                 Python                              content
==================  ==================================  ==============
``$bytes``          bytes, bytearray                    base64
``$tuple``          tuple                               list
``$set``            set                                 list
``$frozenset``      frozenset                           list
``$complex``        complex                             [re, im]
``$datetime``       datetime.datetime                   ISO 8601
``$date``           datetime.date                       ISO 8601
``$time``           datetime.time                       ISO 8601
``$timedelta``      datetime.timedelta                  seconds
``$decimal``        decimal.Decimal                     text
``$float``          nan, inf, -inf                      text
``$int``            int of more than 64 bits            text
``$dict``           dict with other keys than texts     list of pairs
==================  ==================================  ==============
"""
from __future__ import annotations

import base64
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Callable, Dict, List, Tuple, Type, Union

INT_DIGITS_MAX = 4300  # of a number in text; reading one takes time that grows with the square
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": "nan" if value != value else "inf" if value > 0 else "-inf"}


def _encode_int(value: int) -> Any:
    return int(value) if _INT_MIN <= value <= _INT_MAX else {"$int": str(int(value))}


def _encode_dict(value: Dict[Any, Any]) -> Any:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {str(key): encode(item) for key, item in value.items()}
    return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}


def _items(value: Any) -> List[Any]:
    return [encode(item) for item in value]


#: In this order: bool is an int, datetime a date.
_ENCODERS: Tuple[Tuple[Union[Type[Any], Tuple[Type[Any], ...]], Callable[[Any], Any]], ...] = (
    (bool, bool),
    (str, str),
    (int, _encode_int),
    (float, _encode_float),
    (list, _items),
    (dict, _encode_dict),
    ((bytes, bytearray, memoryview), lambda value: {"$bytes": base64.b64encode(value).decode("ascii")}),
    (tuple, lambda value: {"$tuple": _items(value)}),
    (set, lambda value: {"$set": _items(value)}),
    (frozenset, lambda value: {"$frozenset": _items(value)}),
    (complex, lambda value: {"$complex": [_encode_float(value.real), _encode_float(value.imag)]}),
    (datetime, lambda value: {"$datetime": value.isoformat()}),
    (date, lambda value: {"$date": value.isoformat()}),
    (time, lambda value: {"$time": value.isoformat()}),
    (timedelta, lambda value: {"$timedelta": value.total_seconds()}),
    (Decimal, lambda value: {"$decimal": str(value)}),
)


def encode(value: Any) -> Any:
    """A value as JSON can hold it. TypeError, which names the type: neither JSON nor a tag can hold it.

    >>> encode({"a": (1, 2.5), "b": b"reef"})
    {'a': {'$tuple': [1, 2.5]}, 'b': {'$bytes': 'cmVlZg=='}}
    >>> encode(object())
    Traceback (most recent call last):
    ...
    TypeError: a value of type object cannot cross the boundary of a sandbox
    """
    if value is None:
        return None
    for kind, encoder in _ENCODERS:
        if isinstance(value, kind):
            return encoder(value)
    raise TypeError("a value of type %s cannot cross the boundary of a sandbox" % type(value).__name__)


def _decode_int(text: Any) -> int:
    if len(text) > INT_DIGITS_MAX:
        raise ValueError("a number of too many digits")
    return int(text)


def _decode_float(text: Any) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text]


def _decode_complex(parts: Any) -> complex:
    real, imag = parts
    return complex(float(decode(real)), float(decode(imag)))


def _decode_datetime(text: Any) -> datetime:
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)  # Python reads the Z since 3.11


def _decoded(items: Any) -> List[Any]:
    if not isinstance(items, list):
        raise ValueError("a list is wanted")
    return [decode(item) for item in items]


_DECODERS: Dict[str, Callable[[Any], Any]] = {
    "$bytes": lambda text: base64.b64decode(text, validate=True),
    "$tuple": lambda items: tuple(_decoded(items)),
    "$set": lambda items: set(_decoded(items)),
    "$frozenset": lambda items: frozenset(_decoded(items)),
    "$complex": _decode_complex,
    "$datetime": _decode_datetime,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$timedelta": lambda seconds: timedelta(seconds=seconds),
    "$decimal": Decimal,
    "$float": _decode_float,
    "$int": _decode_int,
    "$dict": lambda pairs: {decode(key): decode(item) for key, item in pairs},
}


def decode(value: Any) -> Any:
    """The value that tagged JSON stands for.

    >>> decode({"when": {"$date": "2026-11-17"}, "pair": {"$tuple": [1, {"$float": "inf"}]}})
    {'when': datetime.date(2026, 11, 17), 'pair': (1, inf)}
    >>> decode({"$set": 3})
    {'$set': 3}
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (name, content), = value.items()
        decoder = _DECODERS.get(name)
        if decoder is not None:
            try:
                return decoder(content)
            except (TypeError, ValueError, KeyError, ArithmeticError, AttributeError):
                return value
    return {key: decode(item) for key, item in value.items()}
