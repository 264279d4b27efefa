"""Validation of arguments by the rules of the declaration."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pulumi

from ebbtide.declaration.model import Cluster, DeclarationError, Fault, advice, declare
from ebbtide.declaration.model.waiting import waiting_field, waiting_paths
from ebbtide.values.paths import is_within, path_keys, position

from ..inputs import input_errors
from .arguments import Arguments


@dataclass(frozen=True, slots=True)
class Waiting:
    """Outputs that are unknown in this preview, by the token that stands for each in the declaration."""

    outputs: dict[str, pulumi.Output[Any]] = field(default_factory=dict[str, pulumi.Output[Any]])

    def token(self, output: pulumi.Output[Any]) -> str:
        """Return a new token for an output: a valid name in both clouds."""
        token = f"ebbtide-unknown-{len(self.outputs):03}"
        self.outputs[token] = output
        return token

    def options(self) -> pulumi.ResourceOptions:
        """Return the options of a component below which no resource has a token in its inputs."""
        return pulumi.ResourceOptions(transformations=[self._transformation] if self.outputs else None)

    def resolved(self, value: Any) -> Any:
        """Return a value in which every text with a token is unknown."""
        if not self.outputs:
            return value
        match value:
            case str():
                unknown = [output for token, output in self.outputs.items() if token in value]
                return pulumi.Output.all(*unknown).apply(lambda _: value) if unknown else value
            case pulumi.Output():
                return cast("pulumi.Output[Any]", value).apply(
                    lambda known: pulumi.Output.from_input(self.resolved(known))
                )
            case Mapping():
                fields = cast("Mapping[str, Any]", value)
                return {key: self.resolved(item) for key, item in fields.items()}
            case list() | tuple():
                return [self.resolved(item) for item in cast("list[Any]", value)]
            case _:
                return value

    def shown(self, text: str) -> str:
        """Return a message without tokens."""
        for token in self.outputs:
            text = text.replace(token, "(not known yet)")
        return text

    def _transformation(self, args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        return pulumi.ResourceTransformationResult(self.resolved(args.props), args.opts)


_POOL: Final = "pools[0]"
_POOL_FIELDS: Final = ("owner", "cloud", "pool")


@dataclass(frozen=True, slots=True)
class Declared:
    """A valid declaration.

    Attributes:
        cluster: the declaration.
        waiting: the outputs for which parts of it wait.
    """

    cluster: Cluster
    waiting: Waiting


def declared_cluster(arguments: Arguments) -> Declared:
    """Validate the arguments of a cluster; its warnings are logged.

    Raises:
        pulumi.InputPropertiesError: with every error and its path.
    """
    faults: list[Fault] = []
    if "extends" in arguments.values:
        faults.append(
            Fault(
                "extends",
                "A program in another language than Python cannot extend a stack's file.",
                "The file is part of another project.",
                "Write the whole declaration, or share its parts in the program.",
            )
        )
    written = {key: value for key, value in arguments.values.items() if key != "extends"}
    return _declared(arguments, written, faults, alone=False)


def declared_pool(arguments: Arguments) -> Declared:
    """Validate the arguments of a node pool as a declaration of an existing cluster with one pool.

    Raises:
        pulumi.InputPropertiesError: with every error and its path.
    """
    values = arguments.values
    faults = [
        Fault(
            key,
            f"A node pool has no argument {key}.",
            "It would be ignored.",
            f"Remove it: the arguments are {', '.join(_POOL_FIELDS)}. ebbtide:index:Cluster has the others.",
        )
        for key in values
        if key not in _POOL_FIELDS
    ]
    if "pool" not in values:
        faults.append(
            Fault("pool", "pool is missing.", "There would be no pool.", "Write the pool's fields.")
        )
    cloud = values.get("cloud")
    if isinstance(cloud, Mapping) and "existing" not in cloud:
        faults.append(
            Fault(
                "cloud.existing",
                "existing is missing.",
                "The pool would have no cluster.",
                "Write the name of its cluster: existing: {name: shared}.",
            )
        )
    written = {key: values[key] for key in ("owner", "cloud") if key in values}
    pools = {"pools": [values["pool"]]} if "pool" in values else {}
    return _declared(arguments, {**written, **pools}, faults, alone=True)


def _declared(arguments: Arguments, written: Any, faults: list[Fault], *, alone: bool) -> Declared:
    waiting, paths = Waiting(), {_inside(path, alone=alone): path for path in arguments.unknown}
    unusable = {_inside(path, alone=alone) for path in (*arguments.secret, *arguments.foreign)}
    for path, argument in paths.items():
        row = waiting_field(path, written, alone=alone)
        reason = row.impossible(written) if row else ""
        if row is None or reason:
            unusable.add(path)
            others = waiting_paths(written, alone=alone)
            faults.append(_unknown(path, reason, [_outside(other) for other in others] if alone else others))
        else:
            written = _with(written, path, row.form.format(waiting.token(arguments.unknown[argument])))
    faults += _unusable(arguments, alone=alone)
    cluster = None
    try:
        cluster = declare(written, default_name=f"{pulumi.get_project()}-{pulumi.get_stack()}")
    except DeclarationError as error:
        known = {fault.path for fault in faults}
        faults += [
            fault
            for fault in error.faults
            if not any(is_within(fault.path, path) for path in unusable)
            and not (alone and (_outside(fault.path) in known or fault.path == "pools"))
        ]
    if cluster is None or faults:
        in_order = sorted(faults, key=lambda fault: position(fault.path, written))
        shown = (_argument(fault, waiting, alone=alone) for fault in in_order)
        raise input_errors("The declaration is invalid.", shown)
    for warning in advice(cluster):
        pulumi.log.warn(str(_argument(warning, waiting, alone=alone)))
    return Declared(cluster, waiting)


def _argument(fault: Fault, waiting: Waiting, *, alone: bool) -> Fault:
    """Return a fault with the path of its argument, and without tokens."""
    path = _outside(fault.path) if alone else fault.path
    texts = {name: waiting.shown(getattr(fault, name)) for name in ("problem", "consequence", "fix")}
    return replace(fault, path=path, **texts)


def _unusable(arguments: Arguments, *, alone: bool) -> Iterator[Fault]:
    for path in arguments.secret:
        yield Fault(
            _inside(path, alone=alone),
            "The value is a secret.",
            "A declaration has none: its values become names, labels and outputs in plain text.",
            "Pass a value that is not a secret.",
        )
    for path, kind in arguments.foreign.items():
        yield Fault(
            _inside(path, alone=alone),
            f"The value is a {kind}.",
            "A declaration has text, numbers, lists and mappings only.",
            "Pass one of its outputs, such as its name.",
        )


def _unknown(path: str, reason: str, others: list[str]) -> Fault:
    return Fault(
        path,
        "The value is an output of a resource that does not exist yet.",
        reason or "The resources to create follow from it.",
        "Write the value itself, or create that resource in an update before."
        + (f" Such outputs are possible in {', '.join(others)}." if others else ""),
    )


def _inside(path: str, *, alone: bool) -> str:
    """Return the path in the declaration of a path in the arguments."""
    return f"{_POOL}{path.removeprefix('pool')}" if alone and is_within(path, "pool") else path


def _outside(path: str) -> str:
    """Return the path in the arguments of a path in the declaration."""
    return re.sub(r"^pools\[[0*]\]", "pool", path)


def _with(value: Any, path: str, new: Any) -> Any:
    """Return a copy of a value with another one at a path."""
    keys = path_keys(path)

    def put(at: Any, depth: int) -> Any:
        if depth == len(keys):
            return new
        key = keys[depth]
        if isinstance(key, int):
            return [put(item, depth + 1) if index == key else item for index, item in enumerate(at)]
        return {**at, key: put(at[key], depth + 1)}

    return put(value, 0)
