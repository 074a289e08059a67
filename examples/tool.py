# A class whose method is called: atoll run examples/tool.py --invoke Calculator.add --params '{"a": 2, "b": 3}'
class Calculator:
    def __init__(self, config=None):
        self.config = config

    def add(self, a, b):
        print("adding")
        return {"sum": a + b}
