"""Run a program's `__main__.py` in this process, isolated as the `pulumi` command's process would be."""

import contextlib
import importlib
import os
import runpy
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

# The running package: a second copy would define different classes.
_OWN = __name__.partition(".")[0]


def main_file(program: Path) -> Path:
    """Return the file to run: `__main__.py` of a directory, or the file itself.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = program / "__main__.py" if program.is_dir() else program
    if not path.is_file():
        raise FileNotFoundError(f"There is no program at {path}.")
    return path


def run(main: Path) -> None:
    """Run a program's main file; pending tasks stay on the event loop."""
    runpy.run_path(str(main), run_name="__main__")


@contextlib.contextmanager
def entered(directory: Path) -> Generator[None]:
    """Enter a program's directory: make it the working directory and the first entry of the import path.

    Modules imported from the directory are removed at the end, so that the next run, or another program with
    modules of the same names, imports its own. All other imports are kept, which makes the second run fast.
    During the run, modules of the same names from elsewhere are hidden.
    """
    directory = directory.resolve()
    importable = _importable(directory)
    before = set(sys.modules)
    hidden = {
        name: module
        for name, module in sys.modules.items()
        if _head(name) in importable and not _is_from(module, directory)
    }
    for name in hidden:
        del sys.modules[name]
    path, working_directory = list(sys.path), Path.cwd()
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(working_directory)
        sys.path[:] = path
        heads = {_head(name) for name in before} - {_head(name) for name in hidden}
        for name, module in list(sys.modules.items()):
            if name not in before and _head(name) not in heads and _is_from(module, directory):
                del sys.modules[name]
        sys.modules.update(hidden)


def _head(name: str) -> str:
    return name.partition(".")[0]


def _importable(directory: Path) -> set[str]:
    """List the program's top-level modules and packages in a directory, without Ebbtide's and the standard
    library's.
    """
    modules = {entry.stem for entry in directory.glob("*.py")}
    packages = {entry.parent.name for entry in directory.glob("*/__init__.py")}
    return (modules | packages) - {_OWN, "__main__"} - sys.stdlib_module_names


def _is_from(module: ModuleType, directory: Path) -> bool:
    """Check that a module is in the directory itself, not in a virtual environment inside it."""
    if _head(module.__name__) == _OWN:
        return False
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if not isinstance(file, str):
        return False
    path = Path(file)
    return path.is_relative_to(directory) and "site-packages" not in path.parts
