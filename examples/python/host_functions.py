# SPDX-License-Identifier: Apache-2.0
"""Tools for an agent: code in the sandbox calls functions of this process. What they may do is decided here.

Prints:

    total: 11.5
    refused: PermissionError: no prices for gold
    2 calls: price, price
"""
import atoll

PRICES = {"tea": 2.5, "rum": 9.0}


def price(name: str) -> float:
    """The code can ask for a price; it can neither see nor change the table."""
    if name not in PRICES:
        raise PermissionError("no prices for %s" % name)
    return PRICES[name]


with atoll.Sandbox(host_functions={"price": price}) as sandbox:
    result = sandbox.run("sum(price(name) for name in ['tea', 'rum'])")
    print("total:", result.value)
    refused = sandbox.run("""
try:
    price('gold')
except PermissionError as error:
    print("refused: PermissionError:", error)
""")
    print(refused.stdout, end="")
    print("%d calls: %s" % (len(result.host_calls), ", ".join(call["name"] for call in result.host_calls)))
