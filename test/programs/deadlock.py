# SPDX-License-Identifier: Apache-2.0
import os
import select
import sys
import threading
import time

r, w = os.pipe()
threading.Timer(0.02, lambda: os.write(w, b"late")).start()
print(select.select([r], [], [], 0)[0], len(select.select([r], [], [], 5)[0]), os.read(r, 10))
event = threading.Event()
print(event.wait(0.01))
condition = threading.Condition()
items = []
def produce():
    for i in range(3):
        with condition:
            items.append(i)
            condition.notify()
threading.Thread(target=produce).start()
with condition:
    print(condition.wait_for(lambda: len(items) == 3, timeout=5), items)
start = time.monotonic()
time.sleep(0.03)
print(0.03 <= time.monotonic() - start < 5, time.time() > 1.6e9)
os._exit(33)
