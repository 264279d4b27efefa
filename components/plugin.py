"""The component `ebbtide:index:Cluster` for programs in any language, on Pulumi's own component host."""

import inspect
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypedDict

import pulumi
from pulumi import provider
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.experimental.util import camel_case
from pulumi.provider.server import ComponentInitError

from ebbtide import __version__
from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.declare import advice, declare
from ebbtide.declaration.model.faults import DeclarationError, Fault

from . import program
from .inputs import input_errors
from .replacement import constructed

_INVALID: Final = "The declaration is invalid."
_OUTPUT: Final = "The declaration has a secret, or an output of another resource."
_IMPORT: Final = "Remove it, and set Pulumi's option `import` in a transform of your program."
_PLAIN: Final = "Write plain values; create other resources in a stack of their own, before."


class ClusterArgs(TypedDict):
    """Arguments of a cluster."""

    declaration: Any
    """The declaration, as under `ebbtide:cluster` in a stack's file, without `extends`."""


class Cluster(pulumi.ComponentResource):
    """A declared cluster with everything on it: the resources of a Python program, under their names.

    The cloud's provider may be among the component's `providers`; otherwise one is created for the declared
    account.
    """

    cluster_name: pulumi.Output[str]
    """Name of the cluster in its cloud."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig without credentials."""
    placement_profile: pulumi.Output[str]
    """Placement profile of the pools, which `ebbtide job --profile` reads."""
    expires: pulumi.Output[str] | None
    """Time of expiry of an ephemeral cluster."""
    aks_cluster_inputs: pulumi.Output[str] | None
    """AKS: fingerprint of the cluster's inputs. Export it as the stack's output `aksClusterInputs`: without
    it, the next preview after a refresh shows work pools as removed."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        constructed.set(name)
        declaration = _declared(args["declaration"])
        super().__init__("ebbtide:index:Cluster", name, dict(args), opts)
        topology = program.deploy(declaration, self, opts.providers if opts else None)
        outputs = program.outputs(declaration, topology)
        for output in inspect.get_annotations(type(self)):
            setattr(self, output, outputs.get(camel_case(output)))
        self.register_outputs(outputs)


def _declared(argument: Any) -> Declaration:
    """Validate a declaration, whose numbers the engine sends as floats; its warnings are logged.

    Raises:
        pulumi.InputPropertiesError: with every error and its path.
    """
    try:
        written: Any = json.loads(json.dumps(argument), parse_float=_number, object_hook=_without_null)
        name = f"{pulumi.get_project()}-{pulumi.get_stack()}"
        declaration = declare(written, default_name=name)
    except TypeError:  # not JSON: an output, known or not
        faults = [Fault("", _OUTPUT, "Pools, names and resources follow from it.", _PLAIN)]
        raise input_errors(_INVALID, _arguments(faults)) from None
    except DeclarationError as error:
        raise input_errors(_INVALID, _arguments(error.faults)) from None
    if declaration.adopt:
        fault = Fault("adopt", "A component cannot read a file.", "Nothing would be adopted.", _IMPORT)
        raise input_errors(_INVALID, _arguments([fault]))
    for warning in advice(declaration):
        pulumi.log.warn(str(warning))
    return declaration


def _arguments(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield faults with the paths of their arguments."""
    for fault in faults:
        yield replace(fault, path=f"declaration.{fault.path}".rstrip("."))


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _without_null(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without null, which some languages send for what is omitted."""
    return {key: value for key, value in fields.items() if value is not None}


class _Provider(ComponentProvider):
    """Pulumi's component host, without a traceback of the program in the errors of its user."""

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> provider.ConstructResult:
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            raise error.inner from None


def host() -> ComponentProvider:
    """Return the provider of the package `ebbtide`. With Pulumi's namespace, SDKs have the names of its own;
    without one, of the repository's owner."""
    return _Provider([Cluster], "ebbtide", "pulumi", __version__)


def main() -> None:
    """Serve the component to the engine, whose address is the first argument."""
    provider.main(host(), sys.argv[1:])
