# SPDX-License-Identifier: Apache-2.0
"""Calls one method of a class that a tool file defines, for `atoll run --invoke`.

    invoke.py TOOL CLASS METHOD     parameters in .atoll-params.json, answer in .atoll-invoke.json

The answer is one JSON object {"result", "error", "traceback", "type"}, written in a file of its own, so
that the tool's prints stay plain output. Exit status 0: no error, 1: an error is in the answer.
"""
import importlib.util
import json
import os
import sys
import traceback

WORK = "/sandbox"
PARAMS = os.path.join(WORK, ".atoll-params.json")
ANSWER = os.path.join(WORK, ".atoll-invoke.json")
MODULE = "sandboxed_tool_module__sandboxed_tool"


def load(path):
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses and pickle look up their module
    spec.loader.exec_module(module)
    return module


def instantiate(tool_class, name):
    try:
        return tool_class(config={})
    except TypeError:
        try:
            return tool_class()
        except Exception as error:
            text = f"Failed to initialize '{name}' with default attempts (config={{}} or no args): {error}"
            try:
                wrapped = type(error)(text)
            except Exception:
                wrapped = RuntimeError(text)
            raise wrapped from error


def call(path, class_name, method_name):
    with open(PARAMS, encoding="utf-8") as file:
        params = json.load(file)
    tool_class = getattr(load(path), class_name)
    method = getattr(instantiate(tool_class, class_name), method_name)
    return method(**params)


def failure(error):
    return {"result": None, "error": str(error), "type": type(error).__name__,
            "traceback": "".join(traceback.format_exception(error))}


def encode(answer):
    try:
        return json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(answer["result"]).__name__
        text = f"Non-serializable result. Serialization error: {error}"
        return json.dumps({"result": f"Result of type {kind} is not JSON serializable.",
                           "error": text, "type": type(error).__name__,
                           "traceback": "".join(traceback.format_exception(error))})


def main():
    path, class_name, method_name = sys.argv[1:4]
    sys.argv = [path]
    try:
        result = call(path, class_name, method_name)
        answer = {"result": result, "error": None, "type": None, "traceback": None}
    except Exception as error:  # SystemExit is the tool's own way out and passes
        answer = failure(error)
    text = encode(answer)
    with open(ANSWER, "w", encoding="utf-8") as file:
        file.write(text)
    return 0 if json.loads(text)["error"] is None else 1


if __name__ == "__main__":
    sys.exit(main())
