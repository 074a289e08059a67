# SPDX-License-Identifier: Apache-2.0
import os
import signal
import time

seen = []

def caught(number, frame):
    seen.append(number)
    print("caught", signal.Signals(number).name, flush=True)

def wait_for(count):
    # pause() would sleep for ever behind a signal that came just before it.
    while len(seen) < count:
        time.sleep(0.01)

signal.signal(signal.SIGUSR1, caught)
os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGALRM, caught)
signal.setitimer(signal.ITIMER_REAL, 0.05)
wait_for(2)
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGTERM, lambda *a: os._exit(7))
    os.kill(os.getppid(), signal.SIGUSR1)
    time.sleep(10)
    os._exit(1)
wait_for(3)
os.kill(pid, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
print(signal.sigwait({signal.SIGUSR2}).name)
os.kill(os.getpid(), signal.SIGTERM)
