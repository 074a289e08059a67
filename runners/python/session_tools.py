# SPDX-License-Identifier: Apache-2.0
"""The tools of a Python session: values that cross the channel, compilation, rich outputs, rules, files.

The front joins this file and session.py, in this order, to the one program that a session runs.

Import, filesystem and subprocess rules are conveniences: they make forbidden calls of the program's own code fail early and with a clear
message. Landlock and the system call filter are the boundary.
"""
import _ast
import builtins
import os
import sys

LINE_MOST = 32 << 20   # bytes of one output, and of a file that is read
TEXT_MOST = 64 << 10   # characters of the text beside a rich output
OUTPUTS_MOST = 100     # rich outputs of an execution
ENTRIES_MOST = 10_000  # entries of a list of files
DEPTH_MOST = 60        # levels of a value as JSON
PARTS_MOST = 250_000   # parts of a value as JSON

AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURES = 0x1FE0000    # flags of `from __future__ import`, which hold for later executions
COROUTINE, ASYNC_GENERATOR = 0x80, 0x200

session = None         # the Session, once it is there

# ------------------------------------------------------------------------------------------ values


def b64(data):
    from binascii import b2a_base64
    return b2a_base64(data, newline=False).decode()


def unb64(text):
    from binascii import a2b_base64
    return a2b_base64(text)


def tag_float(value, depth):
    if value - value == 0:
        return float(value)
    return {"$float": "nan" if value != value else "inf" if value > 0 else "-inf"}


def tag_dict(value, depth):
    keys = [*value]
    if all(isinstance(key, str) and "\0" not in key for key in keys) and not (len(keys) == 1 and keys[0].startswith("$")):
        return {str.__str__(key): tag(item, depth) for key, item in value.items()}
    return {"$dict": [[tag(key, depth + 2), tag(item, depth + 2)] for key, item in value.items()]}


def tag_items(name):
    return lambda value, depth: {name: [tag(item, depth + 1) for item in value]}


TAGS = {
    "builtins.NoneType": lambda value, depth: None,
    "builtins.bool": lambda value, depth: value,
    "builtins.int": lambda value, depth: int(value) if -2**63 <= value < 2**63 else {"$int": int.__repr__(value)},
    "builtins.float": tag_float,
    "builtins.str": lambda value, depth: str.__str__(value),
    "builtins.list": lambda value, depth: [tag(item, depth) for item in value],
    "builtins.dict": tag_dict,
    "builtins.tuple": tag_items("$tuple"),
    "builtins.set": tag_items("$set"),
    "builtins.frozenset": tag_items("$frozenset"),
    "builtins.bytes": lambda value, depth: {"$bytes": b64(value)},
    "builtins.bytearray": lambda value, depth: {"$bytes": b64(value)},
    "builtins.complex": lambda value, depth: {"$complex": [tag_float(value.real, 0), tag_float(value.imag, 0)]},
    "datetime.datetime": lambda value, depth: {"$datetime": value.isoformat()},
    "datetime.date": lambda value, depth: {"$date": value.isoformat()},
    "datetime.time": lambda value, depth: {"$time": value.isoformat()},
    "datetime.timedelta": lambda value, depth: {"$timedelta": value.total_seconds()},
    "decimal.Decimal": lambda value, depth: {"$decimal": str(value)},
    "numpy.bool_": lambda value, depth: bool(value),
    "numpy.integer": lambda value, depth: tag(int(value), depth),
    "numpy.floating": lambda value, depth: tag_float(float(value), depth),
}


def tag(value, depth=0):
    """The value as JSON with tags; the classes of a value are known by their names, so that their modules need not be loaded."""
    if depth > DEPTH_MOST:
        raise ValueError(f"value has more than {DEPTH_MOST} levels")
    for base in type(value).__mro__:
        function = TAGS.get(f"{base.__module__}.{base.__name__}")
        if function:
            return function(value, depth + 1)
    raise TypeError(f"{type(value).__name__} cannot cross the boundary of the sandbox")


def check_tree(tree):
    """Refuses JSON that the front does not read: with more levels or parts, larger numbers, or NUL in a name."""
    todo, parts = [(tree, 0)], 0
    while todo:
        item, depth = todo.pop()
        if isinstance(item, int) and not -2**63 <= item < 2**63:
            raise ValueError("number has more than 64 bits")
        if isinstance(item, dict) and any(isinstance(key, str) and "\0" in key for key in item):
            raise ValueError("name has a NUL byte")
        if isinstance(item, (dict, list, tuple)):
            parts += len(item)
            if parts > PARTS_MOST or depth > DEPTH_MOST:
                raise ValueError(f"value has more than {PARTS_MOST} parts or {DEPTH_MOST} levels")
            todo += [(child, depth + 1) for child in (item.values() if isinstance(item, dict) else item)]


def check_parts(line, tree):
    """Refuses what tag() made when it has too many parts."""
    if line.count(b",") + line.count(b"[") + line.count(b"{") > PARTS_MOST:
        check_tree(tree)


def imported(module, name):
    return getattr(__import__(module), name)


UNTAGS = {
    "$bytes": unb64,
    "$tuple": lambda items: tuple(untag(items)),
    "$set": lambda items: set(untag(items)),
    "$frozenset": lambda items: frozenset(untag(items)),
    "$complex": lambda parts: complex(*untag(parts)),
    "$datetime": lambda text: imported("datetime", "datetime").fromisoformat(text),
    "$date": lambda text: imported("datetime", "date").fromisoformat(text),
    "$time": lambda text: imported("datetime", "time").fromisoformat(text),
    "$timedelta": lambda seconds: imported("datetime", "timedelta")(seconds=seconds),
    "$decimal": lambda text: imported("decimal", "Decimal")(text),
    "$float": float,
    "$int": int,
    "$dict": lambda pairs: {untag(key): untag(value) for key, value in pairs},
}


def untag(value):
    if isinstance(value, list):
        return [untag(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, content), = value.items()
        if key.startswith("$"):
            if key not in UNTAGS:
                raise ValueError(f"unknown tag {key}")
            return UNTAGS[key](content)
    return {key: untag(item) for key, item in value.items()}


# -------------------------------------------------------------------------------------------- code

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def has_return(body):
    """Whether a statement outside of functions and classes is a `return`."""
    return any(isinstance(node, _ast.Return) or any(has_return(getattr(node, name, ())) for name in BLOCKS)
               for node in body if not isinstance(node, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)))


def rewrite(body, change):
    """Replaces statements outside of functions and classes; None leaves one as it is."""
    import ast
    for place, node in enumerate(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        new = change(ast, node)
        if new is not None:
            body[place] = ast.fix_missing_locations(ast.copy_location(new, node))
        for name in BLOCKS:
            rewrite(getattr(node, name, ()), change)


def as_in_module(ast, node):
    """A statement with which a module is valid when a function with a `return` in its place is."""
    if isinstance(node, ast.Return):
        return ast.Expr(node.value) if node.value else ast.Pass()


def as_in_function(ast, node):
    """A function has no star imports, no annotated globals, and gets its __future__ from elsewhere."""
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        return ast.parse(f"exec({ast.unparse(node)!r})").body[0]
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return ast.Pass()
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return ast.Assign([node.target], node.value) if node.value else ast.Pass()


def compile_as_function(parse, make):
    """Code that returns what the cell returns. Run with one dictionary it stores and finds its names there, as a module's code does."""
    import ast
    tree = parse()
    rewrite(tree.body, as_in_module)
    module = make(tree, "exec")  # refuses what a module may not hold
    is_async, futures = module.co_flags & COROUTINE, module.co_flags & FUTURES
    tree = parse()
    rewrite(tree.body, as_in_function)
    if isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Return(tree.body[-1].value), tree.body[-1])
    names = ()
    for _ in range(2):  # the first one tells which names are to be global
        body = [ast.Global([*names]), *tree.body] if names else tree.body
        function = (ast.AsyncFunctionDef if is_async else ast.FunctionDef)("<module>", ast.arguments([], [], None, [], [], None, []), body, [])
        module = make(ast.fix_missing_locations(ast.Module([function], [])), "exec", futures)
        code = next(item for item in module.co_consts if hasattr(item, "co_code"))
        names = code.co_varnames + code.co_cellvars
    return [code.replace(co_flags=code.co_flags & ~3 | futures)]  # 3: OPTIMIZED and NEWLOCALS


def compile_cell(source, path, futures):
    """The parts of a cell, to be evaluated in order; the result of the last one is the value."""
    def parse():
        return compile(source, path, "exec", AWAIT | futures | _ast.PyCF_ONLY_AST, True)

    def make(tree, mode, more=0):
        return compile(tree, path, mode, AWAIT | futures | more, True)

    tree = parse()
    if "return" in source and has_return(tree.body):
        return compile_as_function(parse, make)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    parts = [make(tree, "exec")] if tree.body else []
    if last:
        parts.append(make(_ast.Expression(last.value), "eval", parts[0].co_flags & FUTURES if parts else 0))
    if any(part.co_flags & COROUTINE for part in parts):  # all of it is to run in the event loop
        return compile_as_function(parse, make)
    return parts


# ---------------------------------------------------------------------------------- lines of notebooks

MAGICS = "%cd, %env, %matplotlib, %pip, %time and %timeit"
LINES_MOST = 100  # lines of a cell that are no Python


def compile_notebook(source, path, futures):
    """As compile_cell(). Lines that begin with ! or % and that Python does not take run a command, as in a notebook."""
    lines = source.split("\n")
    for _ in range(LINES_MOST):
        try:
            return compile_cell("\n".join(lines), path, futures)
        except SyntaxError as error:
            line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
            text = line.strip()
            if text[:1] not in ("!", "%"):
                raise
            lines[error.lineno - 1] = f"{line[:len(line) - len(line.lstrip())]}_notebook_line({text!r})"
    return compile_cell("\n".join(lines), path, futures)


def run_shell(text):
    import subprocess
    flush()
    subprocess.run(text, shell=True, stdin=subprocess.DEVNULL)


def time_statement(text, repeats):
    from time import perf_counter
    code, count = compile(text, "<timed>", "exec"), 1
    while True:
        taken = []
        for _ in range(repeats):
            began = perf_counter()
            for _ in range(count):
                exec(code, session.names)
            taken.append(perf_counter() - began)
        if repeats == 1 or min(taken) > 0.05:
            break
        count *= 10
    each = min(taken) / count
    unit, factor = next(((unit, factor) for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)) if each * factor >= 1), ("ns", 1e9))
    print(f"{each * factor:.3g} {unit}" + (f" per loop (best of {repeats}, {count} loops each)" if repeats > 1 else ""))


def notebook_line(line):
    """!COMMAND, or one of the magics of IPython that programs for notebooks use most."""
    name, _, rest = line[1:].partition(" ")
    rest = rest.strip()
    try:
        if line[0] == "!":
            run_shell(line[1:])
        elif name == "pip":
            run_shell(f"'{sys.executable}' -m pip {rest}")
        elif name in ("time", "timeit") and rest:
            time_statement(rest, 5 if name == "timeit" else 1)
        elif name == "cd":
            os.chdir(os.path.expanduser(rest) if rest else session.work)
        elif name == "env" and "=" in rest:
            key, _, value = rest.partition("=")
            os.environ[key.strip()] = value.strip()
        elif name != "matplotlib":  # figures are shown anyway
            raise NameError(f"%{name} is a magic of IPython that sessions do not have; they have !COMMAND, {MAGICS}")
    finally:
        session.deliver()


# ---------------------------------------------------------------------------------- host functions and input


class Shown:
    """Something whose text is all that is known of it."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def shape_of(name, signature):
    """A function that is never called: help() and inspect.signature() show its parameters. None: the text is no signature."""
    source = f"def {name}{' '.join(signature.split())}: pass"
    try:
        function, *rest = compile(source, "<host>", "exec", _ast.PyCF_ONLY_AST).body
    except (SyntaxError, ValueError):
        return None
    if rest or not isinstance(function, _ast.FunctionDef) or [type(item) for item in function.body] != [_ast.Pass]:
        return None

    def taken(node):
        return Shown(source.encode()[node.col_offset:node.end_col_offset].decode())

    args, shown = function.args, {}
    for part in filter(None, [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]):
        if part.annotation is not None:
            shown[part.arg], part.annotation = taken(part.annotation), None
    if function.returns is not None:
        shown["return"], function.returns = taken(function.returns), None
    names = {}
    for values in (args.defaults, args.kw_defaults):
        for place, value in enumerate(values):
            if value is not None:  # the text of a default is shown, and never evaluated
                key = f"default_{len(names)}"
                names[key] = taken(value)
                values[place] = _ast.Name(key, _ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
    exec(compile(_ast.Module([function], []), "<host>", "exec"), names)
    names[name].__annotations__ = shown
    return names[name]


def describe_function(function, signature, doc):
    function.__doc__ = doc
    shape = shape_of(function.__name__, signature) if signature else None
    if shape is not None:
        function.__wrapped__ = shape
    elif signature:
        function.__doc__ = f"{function.__name__}{signature}\n\n{doc or ''}".rstrip()


def set_input(text):
    """The standard input of an execution; None: there is none."""
    if text is None:
        fd = os.open("/dev/null", os.O_RDONLY)
    else:
        try:
            fd = os.memfd_create("stdin")
        except OSError:
            from tempfile import mkstemp
            fd, path = mkstemp()
            os.unlink(path)
        data = memoryview(text.encode("utf-8", "surrogatepass"))
        while data:
            data = data[os.write(fd, data):]
        os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    os.close(fd)
    sys.stdin = open(0, closefd=False)


# ------------------------------------------------------------------------------------ rich outputs

METHODS = {"_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_latex_": "text/latex", "_repr_svg_": "image/svg+xml",
           "_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg", "_repr_pdf_": "application/pdf", "_repr_json_": "application/json",
           "_repr_javascript_": "application/javascript"}


def shortened(text, most):
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def figure_data(figure):
    import io
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png", bbox_inches="tight")
    figure.savefig(svg, format="svg", bbox_inches="tight")
    return {"image/png": png.getvalue(), "image/svg+xml": svg.getvalue()}


def plotly_data(figure):
    return {"application/vnd.plotly.v1+json": session.channel.decoder(figure.to_json())}


FORMATS = {"matplotlib.figure.Figure": figure_data, "plotly.basedatatypes.BaseFigure": plotly_data}


def method_data(value, data, metadata):
    """Asks the methods of the value's class for its representations. One that fails is reported and left out."""
    kind = type(value)
    for name, mime in (("_repr_mimebundle_", None), *METHODS.items()):
        method = getattr(kind, name, None)
        if method is None or mime in data:
            continue
        try:
            found = method(value) if mime else method(value, include=None, exclude=None)
        except Exception as error:
            report(error)
            continue
        found, more = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        if found is None or not mime and not isinstance(found, dict):
            continue
        data.update({mime: found} if mime else found)
        if more:
            metadata.update({mime: more} if mime else more)


def rich(value):
    """Data and metadata of a value, without its text."""
    data, metadata = {}, {}
    for base in type(value).__mro__:
        function = FORMATS.get(f"{base.__module__}.{base.__name__}")
        if function:
            return function(value), metadata
    method_data(value, data, metadata)
    return data, metadata


def fitting(n, data, metadata):
    """The line of an output. The largest representations are left out until the line is short enough."""
    data = {str(mime): b64(item) if isinstance(item, (bytes, bytearray)) else item for mime, item in data.items()}
    for mime, item in [*data.items()]:
        try:
            check_tree(item)
            session.channel.encoder(item)
        except (TypeError, ValueError, RecursionError):
            del data[mime]
    while True:
        try:
            check_tree(metadata)
            line = session.channel.encode({"op": "output", "n": n, "data": data, "metadata": metadata})
        except (TypeError, ValueError, RecursionError):
            metadata = {}
            continue
        if len(line) <= LINE_MOST:
            return line
        del data[max(data, key=lambda mime: len(session.channel.encoder(data[mime])))]
        if not data.keys() - {"text/plain"}:
            data = {"text/plain": f"output of {len(line)} bytes is too large; at most {LINE_MOST} are allowed"}


def publish(data, metadata):
    if session.n is None:
        return
    session.outputs += 1
    if session.outputs <= OUTPUTS_MOST:
        line = fitting(session.n, data, metadata)
        flush()
        session.channel.write(line)
    elif session.outputs == OUTPUTS_MOST + 1:
        sys.stderr.write(f"More than {OUTPUTS_MOST} outputs in one execution: the rest is left out.\n")


def display(*values, raw=False, metadata=None, **_):
    """Shows values in their richest form; with raw=True each value is a dictionary of MIME types."""
    try:
        for value in values:
            if raw:
                publish(dict(value), metadata or {})
            else:
                data, found = rich(value)
                data.setdefault("text/plain", shortened(repr(value), TEXT_MOST))
                publish(data, {**found, **(metadata or {})})
    finally:
        session.deliver()


def show_figures():
    """Shows and closes the figures that pyplot has open, and returns them; stands for pyplot.show()."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()] if pyplot else []
    for figure in figures:
        pyplot.close(figure)
        display(figure)
    return figures


# -------------------------------------------------------------------------------------- after imports


def on_pyplot(module):
    module.show = lambda *_, **__: (show_figures(), None)[1]
    module.Figure.show = lambda figure, *_, **__: (module.close(figure), display(figure))[1]


def on_plotly(module):
    module.BaseFigure.show = lambda figure, *_, **__: display(figure)


def on_pillow(module):
    module.Image.show = lambda image, *_, **__: display(image)


def on_ipython(module):
    module.display = display


def on_linecache(module):
    session.sources = module.cache
    module.cache.update(session.cells)


HOOKS = {"matplotlib.pyplot": on_pyplot, "plotly.basedatatypes": on_plotly, "PIL.Image": on_pillow,
         "IPython.core.display_functions": on_ipython, "linecache": on_linecache}


def run_hooks():
    for name in [*HOOKS]:
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            HOOKS.pop(name)(module)


def watch_imports():
    """Calls the hook of a module when it has been loaded, also from the shelf of a zygote (warm/shelf.py), which finders do not see."""
    bootstrap = sys.modules["_frozen_importlib"]
    find_and_load = bootstrap._find_and_load

    def _find_and_load(name, import_):
        try:
            module = find_and_load(name, import_)
            if HOOKS:
                run_hooks()
            return module
        finally:
            session.deliver()

    bootstrap._find_and_load = as_bootstrap(_find_and_load)
    run_hooks()


def as_bootstrap(function):
    """The interpreter cuts frames of that file out of tracebacks."""
    function.__code__ = function.__code__.replace(co_filename=BOOTSTRAP)
    return function


# ------------------------------------------------------------------------------------------- rules

FILE_CALLS = ("open", "listdir", "scandir", "mkdir", "makedirs", "remove", "unlink", "rename", "replace", "rmdir", "symlink", "link",
              "truncate", "chmod", "chown", "mkfifo", "mknod")
PROCESS_CALLS = ("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe")


class Rules:
    """What the program's own code may import and call: code of the work directory, and code that such code compiles."""

    def __init__(self, place, is_own):
        self.place, self.is_own = place, is_own
        self.imports, self.filesystem, self.subprocess = {}, True, True
        self.installed = False

    def set(self, rules):
        self.imports = rules.get("imports") or {}
        self.filesystem = rules.get("filesystem", True)
        self.subprocess = rules.get("subprocess", True)
        if not self.installed and (self.imports or not self.filesystem or not self.subprocess):
            self.installed = True
            self.install()

    def own(self, frame):
        """Whether the frame runs code of the program. pathlib and code without a file belong to their caller."""
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen"):
                return False
            if name[:1] != "<" and not name.endswith("/pathlib.py"):
                return self.is_own(frame)
            frame = frame.f_back
        return False

    def local(self, name):
        """Whether a file of the work directory is what this name would load."""
        top = name.partition(".")[0]
        loaded = getattr(sys.modules.get(top), "__file__", None)
        if top in sys.stdlib_module_names or loaded and not loaded.startswith(self.place):
            return False
        return os.path.isfile(f"{self.place}{top}.py") or os.path.isdir(f"{self.place}{top}")

    def permits(self, name):
        parts = name.split(".")
        names = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        if not names.isdisjoint(self.imports.get("deny") or ()):
            return False
        allowed = self.imports.get("allow")
        return allowed is None or not names.isdisjoint(allowed) or self.local(name)

    def judge(self, name, items):
        if self.permits(name):
            denied = [f"{name}.{item}" for item in items or () if f"{name}.{item}" in (self.imports.get("deny") or ())]
        else:
            denied = [name] if not items or not all(self.permits(f"{name}.{item}") for item in items) else []
        for refused in denied:
            raise ImportError(f"Import {refused!r} not allowed", name=refused)

    def install(self):
        import importlib
        import io
        import _posixsubprocess
        statement, import_module = builtins.__import__, importlib.import_module

        def guarded_import(name, globals=None, locals=None, fromlist=(), level=0):
            if self.imports and level == 0 and self.own(sys._getframe(1)):
                self.judge(name, fromlist)
            return statement(name, globals, locals, fromlist, level)

        def guarded_import_module(name, package=None):
            if self.imports and not name.startswith(".") and self.own(sys._getframe(1)):
                self.judge(name, ())
            return import_module(name, package)

        builtins.__import__ = importlib.__import__ = as_bootstrap(guarded_import)
        importlib.import_module = as_bootstrap(guarded_import_module)
        builtins.open = io.open = self.guarded_file_call(io.open)
        for name in FILE_CALLS:
            setattr(os, name, self.guarded_file_call(getattr(os, name)))
        for name in PROCESS_CALLS:
            setattr(os, name, self.guarded_process_call(getattr(os, name)))
        _posixsubprocess.fork_exec = self.guarded_process_call(_posixsubprocess.fork_exec)
        if "subprocess" in sys.modules:
            sys.modules["subprocess"]._fork_exec = _posixsubprocess.fork_exec

    def guarded_file_call(self, function):
        def guarded(path=".", *args, **kwargs):
            if not self.filesystem and not isinstance(path, int) and self.own(sys._getframe(1)):
                raise PermissionError(1, "File access is not allowed", path)
            return function(path, *args, **kwargs)
        return copy_names(guarded, function)

    def guarded_process_call(self, function):
        def guarded(*args, **kwargs):
            if not self.subprocess:
                raise PermissionError(1, "Subprocesses are not allowed")
            return function(*args, **kwargs)
        return copy_names(guarded, function)


def copy_names(wrapper, function):
    wrapper.__name__, wrapper.__qualname__, wrapper.__doc__ = function.__name__, function.__name__, function.__doc__
    return wrapper


# ------------------------------------------------------------------------------------------- files


class Files:
    """What the front asks for between executions. Paths are relative to the work directory."""

    def __init__(self, work):
        self.work = work

    def answer(self, message):
        answer = {"op": "file", "n": message["n"], "error": None}
        try:
            answer.update(getattr(self, message["op"])(os.path.join(self.work, message["path"]), message))
        except (OSError, MemoryError) as error:
            from errno import EIO, errorcode
            code = getattr(error, "errno", None) or EIO
            answer.update(error=errorcode.get(code, "EIO"), message=os.strerror(code))
        return answer

    def list(self, path, _):
        if os.path.islink(path) or not os.path.isdir(path):
            return {"entries": [self.entry(path, os.lstat(path))]}
        entries, todo = [], [path]
        while todo and len(entries) < ENTRIES_MOST:
            with os.scandir(todo.pop()) as found:
                for item in sorted(found, key=lambda item: item.name):
                    if len(entries) == ENTRIES_MOST:
                        break
                    try:
                        entry = self.entry(item.path, item.stat(follow_symlinks=False))
                    except FileNotFoundError:
                        continue
                    if entry:
                        entries.append(entry)
                    if entry and entry["type"] == "directory":
                        todo.append(item.path)
        return {"entries": sorted(entries, key=lambda entry: entry["path"])}

    def entry(self, path, found):
        kind = {0o100000: "file", 0o040000: "directory", 0o120000: "link"}.get(found.st_mode & 0o170000)
        return kind and {"path": os.path.relpath(path, self.work), "size": found.st_size, "type": kind, "mtime": found.st_mtime}

    def read(self, path, message):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # the open of a pipe must not wait
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if found.st_mode & 0o170000 != 0o100000:
                raise OSError(21 if found.st_mode & 0o170000 == 0o040000 else 22, "")
            return {"base64": b64(os.pread(fd, message["size"], message["offset"])), "size": found.st_size}

    def write(self, path, message):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(20, "") from None
        with open(path, "r+b" if message["offset"] else "wb") as file:
            file.seek(message["offset"])
            file.write(unb64(message["base64"]))
        return {}

    def remove(self, path, _):
        if os.path.isdir(path) and not os.path.islink(path):
            from shutil import rmtree
            rmtree(path)
        else:
            os.unlink(path)
        return {}
