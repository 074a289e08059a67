# SPDX-License-Identifier: Apache-2.0
"""A Python that programs are forked from.

The zygote loads modules and what most programs use, runs samples of everything so that caches are filled, and reads its
request. That call comes back in children only, each already in its sandbox (contract: runners/WARM.md). A child seeds the
random generators, waits for a program, and runs it as `python3 SCRIPT` would.
Three devices make that exact:

- Modules loaded ahead are taken out of sys.modules and come back, with all that they need, when they are imported
  (shelf.py). So a program sees the modules, attributes, exit functions and warning filters it would see.
- The program runs below no frame of ours (program.py): a SystemExit is raised whose destruction, after the last frame is
  gone, runs it as the finalizer of an object. What the program raises comes to sys.unraisablehook; the finalizer of a
  second object ends the process (ending.py).
- Unusual programs (syntax errors, modules that the program's own files shadow, odd arguments) are run by a new interpreter,
  by exec.

The end skips steps that only free memory, but destroys the program's modules in the interpreter's order.

Most requests differ in their code only. The zygote prepares for such a one before it forks (program.expect), so that a child has
only to compile its code.

A zygote that is asked for modules that every interpreter has (`light` in languages/python.yaml) loads no others: its programs import
nothing else. The less memory a zygote has, the less it takes to fork from it.

zygote.py is the life of the zygote and of a child until its program begins; program.py sets up main module, arguments and
environment, streams.py the standard streams; samples.py is what is rehearsed; pages.py keeps
what children allocate on few pages.

Known to differ from a cold run: the seed of hash() is shared by the children of one zygote; numpy and pandas, in their tiers,
are in sys.modules before the program imports them; gc.collect() counts no garbage of the interpreter's start; a
sys.unraisablehook that an imported file (not the program) sets is called at the program's own end; sys.flags.safe_path does
not show -P. BLAS has one thread for every value of OMP_NUM_THREADS, because a zygote must not have threads.
"""
