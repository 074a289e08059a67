# SPDX-License-Identifier: Apache-2.0
"""Values and rich outputs of the Python package, without any daemon."""
import datetime
import decimal
import json
import math
import sys

import pytest

from program import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
from atoll import Output, Result  # noqa: E402
from atoll._session_calls import HostFunctions  # noqa: E402
from atoll._values import decode, encode  # noqa: E402

VALUES = [None, True, 0, -1, 1.5, "text", "ü\0", [], [1, [2]], {}, {"a": {"b": None}}, b"\x00\xff", (), (1, (2,)), {1, 2}, frozenset({7}), 1 + 2j,
          complex(math.inf, 0), datetime.datetime(2026, 11, 17, 5, 0, 0, 1), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
          datetime.date(2026, 1, 1), datetime.time(1, 2, 3), datetime.timedelta(days=-1, microseconds=1), decimal.Decimal("1.50"),
          math.inf, -math.inf, 2 ** 63, -2 ** 63, 10 ** 40, {1: "a", (1, 2): "b"}, {"$set": [1]}, {"$x": 1, "b": 2}, {"$bytes": "x"}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_travel(value):
    text = json.dumps(encode(value), allow_nan=False)
    back = decode(json.loads(text))
    assert back == value and type(back) is type(value)


def test_what_cannot_travel():
    assert decode({"$datetime": "1970-01-01T00:00:00.000Z"}) == datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    assert math.isnan(decode(encode(math.nan)))
    for value in (object(), [object()], {"a": {1: object()}}, len, ValueError()):
        with pytest.raises(TypeError, match="a value of type (object|builtin_function_or_method|ValueError) cannot cross"):
            encode(value)


@pytest.mark.parametrize("hostile", [
    {"$bytes": "?"}, {"$bytes": 1}, {"$tuple": {}}, {"$set": [[]]}, {"$complex": [1]}, {"$complex": ["a", {}]}, {"$datetime": "now"}, {"$date": 1},
    {"$timedelta": 1e300}, {"$timedelta": "x"}, {"$decimal": "x"}, {"$float": "2"}, {"$int": "9" * 10000}, {"$int": []}, {"$dict": [[[], 1]]},
    {"$dict": [1]}, {"$dict": 1}, {"$other": 1}, {"$set": [1], "b": 1}], ids=repr)
def test_senseless_tags_stay(hostile):
    assert decode(hostile) == hostile


def test_host_functions():
    def join(a, b, *, c):
        return (a, b, c)

    functions = HostFunctions({"join": join, "fail": lambda: {}["x"], "odd": object})
    assert functions.answer({"name": "join", "args": [1, {"$tuple": []}], "kwargs": {"c": 3}}) == {"result": {"$tuple": [1, {"$tuple": []}, 3]}}
    assert functions.answer({"name": "fail"}) == {"error": {"type": "KeyError", "message": "x"}}
    assert functions.answer({"name": "odd"})["error"]["type"] == "TypeError"
    assert functions.answer({"name": "none"})["error"] == {"type": "NameError", "message": "host function 'none' is not registered"}
    assert functions.joined({"more": join}).names() == ["fail", "join", "more", "odd"]
    with pytest.raises(ValueError, match="no name for a host function"):
        functions.add(lambda: 1)
    with pytest.raises(TypeError, match="cannot be called"):
        HostFunctions({"x": 1})


def test_outputs():
    result = Result.from_json({"status": "success", "value": {"$tuple": [1]}, "value_type": "tuple", "session": {"state": "kept"}, "outputs": [
        {"data": {"image/png": "iVBORw0=", "image/svg+xml": "<svg/>", "text/html": "<b>", "text/plain": "t", "application/json": {"a": 1}}}, {}]})
    chart, empty = result.outputs
    assert (result.value, result.value_type, result.session_state) == ((1,), "tuple", "kept")
    assert (chart.png, chart.svg, chart.html, chart.text, chart.json) == (b"\x89PNG\r", "<svg/>", "<b>", "t", {"a": 1})
    assert chart._repr_png_() == chart.get("image/png") == chart._repr_mimebundle_()[0]["image/png"] and chart._repr_html_() == "<b>"
    assert chart._repr_svg_() == "<svg/>" and chart._repr_jpeg_() is None
    assert (empty.png, empty.html, empty.get("image/png"), empty.json) == (None, None, None, None) and isinstance(empty, Output)
