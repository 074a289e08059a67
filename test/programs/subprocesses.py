# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

print(subprocess.run(["sort"], input="b\na\n", capture_output=True, text=True).stdout.split())
print(subprocess.run("echo $((6 * 7)); exit 3", shell=True, capture_output=True, text=True))
pipe = subprocess.Popen(["seq", "5"], stdout=subprocess.PIPE)
print(subprocess.check_output(["paste", "-sd+"], stdin=pipe.stdout, text=True).strip())
pipe.wait()
print(subprocess.run([sys.executable, "-c", "import sys; sys.exit(len(sys.argv))", "a", "b"]).returncode)
try:
    subprocess.run(["sleep", "5"], timeout=0.1)
except subprocess.TimeoutExpired as problem:
    print(type(problem).__name__)
print(subprocess.run(["no-such-program"], shell=False) if False else "end")
