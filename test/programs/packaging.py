# SPDX-License-Identifier: Apache-2.0
import argparse
import ast
import configparser
import importlib
import inspect
import pathlib
import pickle
import sys
import tomllib
import unittest

pathlib.Path("helper.py").write_text("VALUE = 41\ndef add(n):\n    return VALUE + n\n")
helper = importlib.import_module("helper")
print(helper.add(1), inspect.signature(helper.add), pickle.loads(pickle.dumps({1, 2})))
parser = argparse.ArgumentParser(prog="tool")
parser.add_argument("words", nargs="*")
parser.add_argument("--flag", action="store_true")
print(parser.parse_args(sys.argv[1:]), tomllib.loads("a = [1, 2]"), ast.literal_eval("{'k': (1, 2)}"))
config = configparser.ConfigParser()
config.read_string("[s]\nx = 1\n")
print(config["s"].getint("x"))

class Test(unittest.TestCase):
    def test_right(self): self.assertEqual(helper.add(1), 42)
    def test_wrong(self): self.assertEqual(helper.add(1), 43)

result = unittest.TextTestRunner(stream=open("/dev/null", "w")).run(unittest.defaultTestLoader.loadTestsFromTestCase(Test))
print(result.testsRun, len(result.failures))
sys.exit(not result.wasSuccessful())
