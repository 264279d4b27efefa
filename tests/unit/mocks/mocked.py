"""Plain Pulumi mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import pulumi
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs

from ebbtide.analysis.recording.assumption_tables import Question
from ebbtide.analysis.recording.record import ASSUMPTIONS


class Mocks(pulumi.runtime.Mocks):
    """Gives every resource an id, echoes its inputs, and keeps them.

    Attributes:
        resources: every resource that the program has made.
        read: ids of the resources that the program has read.
        existing: by type, the state of a resource that the program reads.
        protected: names of the resources that the engine refuses to delete.
        retained: names of the resources that remain in the cloud when the engine deletes them.
        hooks: names of the hooks before an update, by name of the resource.
    """

    def __init__(self) -> None:
        self.resources: list[MockResourceArgs] = []
        self.read: list[str] = []
        self.existing: dict[str, dict[str, Any]] = {}
        self.protected: set[str] = set()
        self.retained: set[str] = set()
        self.hooks: dict[str, list[str]] = {}

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Return an id and the inputs, or the state of what is read."""
        if args.resource_id:
            self.read.append(args.resource_id)
            return args.resource_id, self.existing[args.typ]
        self.resources.append(args)
        if args.typ == "pulumi:index:Stash":
            return f"{args.name}-id", {"output": args.inputs["input"]}
        return f"{args.name}-id", args.inputs

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Answer a function as an offline preview does, without failures."""
        return ASSUMPTIONS.invoke(Question(token=args.token, inputs=args.args)), []

    def run(self, component: Callable[[], object]) -> None:
        """Run a program of one component."""

        @pulumi.runtime.test
        def program() -> None:
            component()

        program()

    def of_type(self, typ: str) -> list[dict[str, Any]]:
        """The inputs of the resources of a type."""
        return [args.inputs for args in self.resources if args.typ == typ]


class Monitor(MockMonitor):
    """Pulumi's mock monitor, which also keeps the options of resources."""

    def __init__(self, mocks: Mocks) -> None:
        super().__init__(mocks)
        self._mocks = mocks

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the method of the engine's protocol
        """Register a resource."""
        if request.protect:
            self._mocks.protected.add(request.name)
        if request.retainOnDelete:
            self._mocks.retained.add(request.name)
        if request.hooks.before_update:
            self._mocks.hooks[request.name] = list(request.hooks.before_update)
        return super().RegisterResource(request)
