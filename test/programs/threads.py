# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import queue
import threading

jobs, results = queue.Queue(), []
lock = threading.Lock()

def work():
    while (n := jobs.get()) is not None:
        with lock:
            results.append(n * n)

threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for n in range(100):
    jobs.put(n)
for _ in threads:
    jobs.put(None)
for t in threads:
    t.join()
print(sum(results), len(results), threading.active_count())
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(list(pool.map(lambda x: x ** 3, range(6))))
barrier = threading.Barrier(3)
for _ in range(2):
    threading.Thread(target=barrier.wait).start()
print(barrier.wait() in (0, 1, 2))
