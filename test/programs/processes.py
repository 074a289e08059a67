# SPDX-License-Identifier: Apache-2.0
import multiprocessing
import os

def square(n):
    return n * n

def talk(connection):
    connection.send(connection.recv()[::-1])

if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print(pool.map(square, range(10)))
    here, there = multiprocessing.Pipe()
    child = multiprocessing.Process(target=talk, args=(there,))
    child.start()
    here.send([1, 2, 3])
    print(here.recv())
    child.join()
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        shared["b"] = 2
        print(dict(shared))
    value = multiprocessing.Value("i", 0)
    print(child.exitcode, value.value, len(os.sched_getaffinity(0)) > 0)
