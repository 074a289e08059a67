# Run me: ./dev run examples/hello.py
import os
import platform

print(f"Hello from Python {platform.python_version()}, inside a sandbox.")
print(f"I am process {os.getpid()}, user {os.getuid()}, in {os.getcwd()}.")
try:
    print(f"I see {len(os.listdir('/proc/self/fd')) - 1} open files and {sorted(os.listdir('/'))}.")
    open("/etc/shadow")
except OSError as error:
    print(f"{error.filename}: {error.strerror}.")
