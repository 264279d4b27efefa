"""The real Pulumi engine running the repository's own program, against providers of the fake cloud."""

import json
import runpy
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pulumi import automation
from pulumi.automation.events import EngineEvent

from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import PACKAGES
from ebbtide_rehearsal.cloud.protocol import serving
from ebbtide_rehearsal.cloud.provider import Provider
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.engine import forget_earlier_programs, workspace
from ebbtide_rehearsal.tools.find import Tools, ensure
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.any_objects import AnyObjects, ObjectsServicer
from tests.repository import ROOT

_NAMES = ("pulumi", "pulumi-resource-kubernetes")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of an operation of the engine.

    Attributes:
        steps: by operation (`create`, `same`, `update`, `delete`, `create-replacement`, `replace`, …), the
            logical names of the resources, sorted; providers, components and the stack are left out.
        text: what it printed.
    """

    steps: dict[str, list[str]]
    text: str

    @property
    def changed(self) -> dict[str, list[str]]:
        """The steps of all that does not stay as it is."""
        return {step: names for step, names in self.steps.items() if step not in ("same", "read")}


class Stack:
    """A stack of the repository's program. Every method raises `automation.CommandError`, with all that the
    engine printed, where the engine fails."""

    def __init__(self, stack: automation.Stack) -> None:
        self.automation = stack

    def declare(self, declaration: dict[str, Any]) -> None:
        """Set what `ebbtide:cluster` declares, from the next run on."""
        value = automation.ConfigValue(json.dumps(declaration))
        self.automation.set_config("ebbtide:cluster", value)

    def preview(self) -> Outcome:
        """`pulumi preview`."""
        return _watched(lambda see: self.automation.preview(on_event=see).stdout)

    def up(self) -> Outcome:
        """`pulumi up`."""
        return _watched(lambda see: self.automation.up(on_event=see).stdout)

    def refresh(self) -> Outcome:
        """`pulumi refresh`."""
        return _watched(lambda see: self.automation.refresh(on_event=see).stdout)

    def destroy(self) -> Outcome:
        """`pulumi destroy`, which looks at what is protected in its preview; without one the Automation API
        comes upon it half-way (decision 0008)."""
        self.automation.destroy(preview_only=True)
        return _watched(lambda see: self.automation.destroy(on_event=see).stdout)

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs, with secrets in plain text."""
        return {name: output.value for name, output in self.automation.outputs().items()}

    def state(self) -> list[dict[str, Any]]:
        """The resources in the engine's state."""
        deployment = self.automation.export_stack().deployment or {}
        return deployment.get("resources", [])


@contextmanager
def running(directory: Path, store: Store, *providers: Provider) -> Generator[Stack]:
    """A stack of the repository's program, whose engine attaches to these providers, served here; the real
    Kubernetes provider is installed.

    Args:
        directory: where the engine keeps all it has.
        store: of the fake cloud, with its injected faults.
        providers: one a package.
    """
    with serving(store, *providers, servicers={"kubernetes": ObjectsServicer}) as addresses:
        yield Stack(_stack(directory, {"PULUMI_DEBUG_PROVIDERS": addresses}))


class OnCloud(NamedTuple):
    """A stack on the engine, and the fake cloud behind it."""

    stack: Stack
    store: Store
    planes: FakeControlPlanes


@contextmanager
def running_on(cloud: str, directory: Path, objects: Provider | None = None) -> Generator[OnCloud]:
    """A stack on a fake cloud of its own, by default with a Kubernetes provider that takes every object."""
    store, planes = Store(directory / "cloud.sqlite"), FakeControlPlanes()
    provider = FakeProvider(PACKAGES[CloudKind(cloud)], store, planes)
    with running(directory / "engine", store, provider, objects or AnyObjects()) as stack:
        yield OnCloud(stack, store, planes)


def _stack(directory: Path, more: dict[str, str]) -> automation.Stack:
    tools = _tools()
    pulumi, kubernetes = map(tools.path, _NAMES)
    options = workspace(directory, pulumi, kubernetes, "ebbtide", more)
    return automation.create_stack("test", "ebbtide", _program, opts=options)


@cache
def _tools() -> Tools:
    """The engine and the Kubernetes provider: installed, of the cache, or built now."""
    return ensure(_NAMES, on_step=lambda _: None)


def _program() -> None:
    forget_earlier_programs()
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def _watched(run: Callable[[Callable[[EngineEvent], None]], str]) -> Outcome:
    steps: defaultdict[str, list[str]] = defaultdict(list)

    def see(event: EngineEvent) -> None:
        if event.res_outputs_event is None:
            return
        done = event.res_outputs_event.metadata
        if _is_ours(done.type):
            steps[done.op.value].append(done.urn.rpartition("::")[2])

    text = run(see)
    return Outcome({step: sorted(names) for step, names in steps.items()}, text)


def _is_ours(type_: str) -> bool:
    return not type_.startswith(("pulumi:", "ebbtide:"))
