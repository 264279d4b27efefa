"""Fast start of a process: lazy import of large packages, module by module, and rare garbage collection.

`pulumi_gcp.compute` has some 290 modules, and accessing any class imports all of them: for the four classes
of a network, this takes 0.5 s of a preview's 1.5 s. The official client of Kubernetes imports its 700 models,
of which a client of plain JSON needs none: two thirds of its import. The modules are named after their
classes, so a single one can be imported. Any other access loads the whole package.

Every module of a provider's package imports the classes of all its modules' nested inputs from `_inputs`; in
`pulumi_gcp.compute` these are 1,400, a quarter of what a preview takes. Of `_inputs` and `outputs`, only the
classes that a module names are created. Only the command line installs this, in its own process.
"""

import atexit
import builtins
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple, cast

LARGE: Final = frozenset(
    {
        "kubernetes",
        "kubernetes.client",
        "kubernetes.client.models",
        "pulumi_azure_native.network",
        "pulumi_gcp.compute",
        "pulumi_gcp.container",
    }
)
"""Packages that are slow to import; all others load in a tenth of the time."""

NESTED: Final = frozenset(
    f"{package}.{module}"
    for package in LARGE
    if package.startswith("pulumi_")
    for module in ("_inputs", "outputs")
)
"""Their modules with the classes of nested inputs and outputs."""

DEFERRED: Final = frozenset({"google.auth.transport.requests"})
"""Modules that are executed on the first access to a member. The client of Kubernetes imports Google's for a
kind of login that kubectl has no more, and with it cryptography: a third of the client's import."""

_LAZY: Final = LARGE | NESTED | DEFERRED


_THRESHOLD: Final = 2_000_000


def install() -> None:
    """Make large packages lazy from now on; loaded ones are unchanged."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def collect_rarely() -> None:
    """Collect garbage every two million allocations, and not when the process ends.

    Importing a provider and recording 500 pools create a million objects that live until the process ends. At
    Python's default of 700 allocations, collection took a quarter of a preview's time. The collections at
    the end visit all of these objects, and took a sixth.
    """
    gc.set_threshold(max(_THRESHOLD, gc.get_threshold()[0]), *gc.get_threshold()[1:])
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _loader(name: str, loader: importlib.machinery.SourceFileLoader) -> importlib.abc.Loader:
    if name in LARGE:
        return _Loader(loader)
    return _NestedLoader(loader) if name in NESTED else importlib.util.LazyLoader(loader)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _LAZY:  # asked for every import of a process
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _loader(fullname, spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """Create the package without running its `__init__`, which imports everything."""

    def __init__(self, loader: importlib.machinery.SourceFileLoader) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["_load_code"] = lambda: self._loader.get_code(module.__name__)
        module.__class__ = _Package


class _Package(ModuleType):
    """A package that imports its members on first access."""

    def __getattr__(self, name: str) -> Any:
        if name in {"__all__", "__version__"} or not name.startswith("__"):
            for module in _candidates(name):
                if self._has(module) and name in self._imported(module, name):
                    return self.__dict__[name]
            self._load()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a module's name after loading it. A function's module has the function's
        # name, and the package exports the function under it.
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            value = vars(value).get(name, value) if name in _exports(value) else value
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        self._load()
        return sorted(self.__dict__)

    def _has(self, module: str) -> bool:
        files = (f"{module}.py", f"{module}/__init__.py")
        return any(Path(directory, file).is_file() for directory in self.__path__ for file in files)

    def _imported(self, module: str, member: str) -> dict[str, Any]:
        """Import a module and return the package's members, including the module's exports: a member, if it
        does not list them."""
        loaded = importlib.import_module(f"{self.__name__}.{module}")
        if isinstance(loaded, _Nested):
            getattr(loaded, member, None)  # creates it
        for name in _exports(loaded) or {member} & vars(loaded).keys():
            self.__dict__[name] = vars(loaded)[name]
        self.__dict__.setdefault(module, loaded)
        return self.__dict__

    def _load(self) -> None:
        """Run the package's `__init__`; modules that are already imported are not imported again."""
        load_code = self.__dict__.pop("_load_code", None)
        if load_code is not None:
            exec(cast("CodeType", load_code()), self.__dict__)  # noqa: S102 - the package's own code


class _Deferred(NamedTuple):
    """A class whose body and decorators have not run."""

    code: CodeType
    create: Callable[[], type]


class _NestedLoader(importlib.abc.Loader):
    """Run a module of classes, but put off their bodies and the SDK's decorators, which generate methods."""

    def __init__(self, loader: importlib.machinery.SourceFileLoader) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        pulumi = importlib.import_module("pulumi")
        marks = {name: _put_off_decorator(vars(pulumi)[name]) for name in ("input_type", "output_type")}
        marking = SimpleNamespace(**{**vars(pulumi), **marks})

        def imported(*args: Any) -> Any:
            package = builtins.__import__(*args)
            return marking if package is pulumi else package

        members = module.__dict__
        members["__builtins__"] = {**vars(builtins), "__build_class__": _put_off, "__import__": imported}
        exec(cast("CodeType", self._loader.get_code(module.__name__)), members)  # noqa: S102 - the package's own
        members |= {"__builtins__": vars(builtins), "pulumi": pulumi}
        deferred = {name: item for name, item in members.items() if isinstance(item, _Deferred)}
        for name in deferred:
            del members[name]
        members["_deferred"] = deferred
        members["_names"] = members.pop("__all__")
        module.__class__ = _Nested


def _put_off(body: FunctionType, *args: Any, **options: Any) -> _Deferred:
    return _Deferred(body.__code__, partial(builtins.__build_class__, body, *args, **options))


def _put_off_decorator(decorate: Callable[[type], type]) -> Callable[[_Deferred], _Deferred]:
    return lambda deferred: _Deferred(deferred.code, lambda: decorate(deferred.create()))


class _Nested(ModuleType):
    """A module that creates a class on first access, with the classes that it names: the SDK looks them up
    among the members of the module."""

    @property
    def __all__(self) -> list[str]:
        """The names that `import *` binds in a module of the package: those that it uses."""
        names: list[str] = self.__dict__["_names"]
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        if (
            caller is None
            or caller.f_code.co_name != "<module>"
            or caller.f_globals["__name__"] == self.__package__
        ):
            return names
        used = set(_words(caller.f_code))
        return [name for name in names if name in used]

    def __getattr__(self, name: str) -> Any:
        pending = [name] if name in self.__dict__["_deferred"] else []
        if not pending:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        while pending:
            pending += self._create(pending.pop())
        return self.__dict__[name]

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__dict__["_names"]})

    def _create(self, name: str) -> Iterable[str]:
        """Create a class, unless it exists, and return the names of classes in its body."""
        deferred: dict[str, _Deferred] = self.__dict__["_deferred"]
        if name not in deferred:
            return ()
        code, create = deferred.pop(name)
        self.__dict__[name] = create()
        return [word for word in _words(code) if word in deferred]


def _words(code: CodeType) -> Iterator[str]:
    """Yield the names and the texts in a piece of code; annotations name later classes as text."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _words(value)
        elif isinstance(value, str):
            yield value


def _exports(module: ModuleType) -> list[str]:
    return vars(module).get("__all__", [])


def _candidates(name: str) -> list[str]:
    """List modules that may define a member: `router_nat` for `RouterNat` and `RouterNatArgs`, `_inputs` for
    other Args.
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    base = snake.removesuffix("_dict")
    if base.endswith("_args"):
        return [base.removesuffix("_args"), "_inputs"]
    return [name] if name == snake else [snake]
