# SPDX-License-Identifier: Apache-2.0
import os
import signal
import time

def caught(number, frame):
    print("caught", signal.Signals(number).name, flush=True)

signal.signal(signal.SIGUSR1, caught)
os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGALRM, caught)
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.pause()
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGTERM, lambda *a: os._exit(7))
    os.kill(os.getppid(), signal.SIGUSR1)
    time.sleep(10)
    os._exit(1)
signal.pause()
os.kill(pid, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
print(signal.sigwait({signal.SIGUSR2}).name)
os.kill(os.getpid(), signal.SIGTERM)
