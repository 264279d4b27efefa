"""Running a directory's `__main__.py` in this process as `pulumi` would in one of its own, and leaving no
trace.
"""

import contextlib
import importlib
import os
import runpy
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

# The package that is running: a second copy of it beside the first would have classes that are not each
# other's.
_OWN = __name__.partition(".")[0]


def main_file(program: Path) -> Path:
    """The file to run: `__main__.py` of a directory, or the file itself.

    Raises:
        FileNotFoundError: when there is none.
    """
    path = program / "__main__.py" if program.is_dir() else program
    if not path.is_file():
        raise FileNotFoundError(f"There is no program at {path}.")
    return path


def run(main: Path) -> None:
    """Run a program's main file to its end; what it awaits is left on the event loop."""
    runpy.run_path(str(main), run_name="__main__")


@contextlib.contextmanager
def at_home(directory: Path) -> Generator[None]:
    """Be in a program's directory: it is the working directory and the first place to import from.

    Modules that the program brings from there are forgotten at the end: the next run of it, or of another
    program with modules of the same names, imports its own. Everything else that it imports stays, which is
    what makes the second run fast. Modules of those names that come from elsewhere are out of the way for as
    long.
    """
    directory = directory.resolve()
    offered = _importable(directory)
    before = set(sys.modules)
    hidden = {
        name: module
        for name, module in sys.modules.items()
        if _head(name) in offered and not _is_from(module, directory)
    }
    for name in hidden:
        del sys.modules[name]
    path, here = list(sys.path), Path.cwd()
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(here)
        sys.path[:] = path
        heads = {_head(name) for name in before} - {_head(name) for name in hidden}
        for name, module in list(sys.modules.items()):
            if name not in before and _head(name) not in heads and _is_from(module, directory):
                del sys.modules[name]
        sys.modules.update(hidden)


def _head(name: str) -> str:
    return name.partition(".")[0]


def _importable(directory: Path) -> set[str]:
    """Top-level modules and packages of a directory that are the program's: not ours, not the standard
    library's.
    """
    modules = {entry.stem for entry in directory.glob("*.py")}
    packages = {entry.parent.name for entry in directory.glob("*/__init__.py")}
    return (modules | packages) - {_OWN, "__main__"} - sys.stdlib_module_names


def _is_from(module: ModuleType, directory: Path) -> bool:
    """Whether a module lies in the directory itself, not in a virtual environment inside it."""
    if _head(module.__name__) == _OWN:
        return False
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if not isinstance(file, str):
        return False
    path = Path(file)
    return path.is_relative_to(directory) and "site-packages" not in path.parts
