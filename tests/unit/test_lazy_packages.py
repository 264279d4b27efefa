"""Large packages are imported in parts, and are what they would have been."""

import json
import sys
import textwrap
from typing import Any

import pytest

from ebbtide.lazy_packages import LARGE
from tests.repository import ran


def _run(code: str, data: Any = None) -> Any:
    """Return the JSON output of a new process: in this one the packages may be loaded already."""
    return json.loads(ran(sys.executable, "-c", textwrap.dedent(code), given=json.dumps(data)).stdout)


_LOADED = """
    import importlib, json, sys, typing
    {install}
    import pulumi_gcp.container as container, pulumi_gcp.compute as compute
    from pulumi import _types
    seen = {{}}
    def follow(hint):
        for item in typing.get_args(hint):
            follow(item)
        if isinstance(hint, type) and hint.__module__.startswith("pulumi_gcp.") and hint not in seen:
            known = _types.is_input_type(hint), _types.is_output_type(hint)
            hints = typing.get_type_hints(hint) if not any(known) else {{
                name: item for name, item in (
                    _types.input_type_types(hint) if known[0] else _types.output_type_types(hint)).items()}}
            seen[hint] = sorted(hints)
            for item in hints.values():
                follow(item)
    for resource in (container.NodePool, container.Cluster, compute.Subnetwork, compute.RouterNat):
        for hint in _types.resource_types(resource).values():
            follow(hint)
    for arguments in (container.NodePoolArgs, container.ClusterArgs, compute.RouterNatArgs):
        follow(arguments)
    names = {{item: f"{{item.__module__}}.{{item.__qualname__}}" for item in seen}}
    members = {{}}
    for name, asked in json.load(sys.stdin).items():
        package = importlib.import_module(name)
        getattr(package, "outputs", None)  # the SDKs' own laziness ends with the first question
        asked = asked or [name for name in dir(package) if not name.startswith("_")]
        items = {{name: getattr(package, name) for name in asked}}
        members[name] = {{name: repr(item) for name, item in items.items() if isinstance(item, type)}}
    print(json.dumps([{{names[item]: fields for item, fields in seen.items()}}, members]))
"""
_INSTALL = "from ebbtide import lazy_packages; lazy_packages.install()"


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    """The types of nested values and the members of packages: loaded whole, and asked for one by one."""
    whole = _run(_LOADED.format(install=""), dict.fromkeys(LARGE - {"kubernetes"}))
    return whole, _run(_LOADED.format(install=_INSTALL), {name: [*it] for name, it in whole[1].items()})


def test_members_are_the_same(loaded: tuple[Any, Any]) -> None:
    """Asked for one by one, every class of a package is the one that the whole package has."""
    (_, whole), (_, lazy) = loaded
    assert {name: len(members) > 300 for name, members in whole.items()} == dict.fromkeys(whole, True)
    assert lazy == whole


def test_types_of_nested_values_are_the_same(loaded: tuple[Any, Any]) -> None:
    """Every class that the types of a resource name, at any depth, is found with the same fields."""
    (whole, _), (lazy, _) = loaded
    assert "pulumi_gcp.container._inputs.NodePoolNodeConfigTaintArgs" in whole
    assert "pulumi_gcp.container.outputs.NodePoolNodeConfigTaint" in whole
    assert lazy == whole


def test_only_what_is_asked_for_is_imported() -> None:
    """The classes of a network are in a handful of modules."""
    modules = _run(f"""
        import json, sys
        {_INSTALL}
        from pulumi_gcp import compute
        for name in ("Network", "Subnetwork", "Router", "RouterNat", "SubnetworkSecondaryIpRangeArgs"):
            assert getattr(compute, name).__name__ == name
        print(json.dumps([name for name in sys.modules if name.startswith("pulumi_gcp.compute.")]))
    """)
    assert len(modules) < 10


def test_the_kubernetes_client_without_its_models() -> None:
    """A client of plain JSON imports no model; the rest of the client works when it is asked for."""
    models, kinds = _run(f"""
        import json, sys
        {_INSTALL}
        import ebbtide.clients.kubernetes.official
        models = [name for name in sys.modules if name.startswith("kubernetes.client.models.")]
        import kubernetes
        from kubernetes import client, watch
        classes = [client.CoreV1Api, client.V1Pod, watch.Watch, kubernetes.dynamic.DynamicClient]
        print(json.dumps([models, [item.__name__ for item in classes]]))
    """)
    assert models == []
    assert kinds == ["CoreV1Api", "V1Pod", "Watch", "DynamicClient"]


def test_the_kubernetes_client_without_cryptography() -> None:
    """A login by token imports no cryptography; Google's transport works when it is asked for."""
    before, after, kind = _run(f"""
        import json, sys
        {_INSTALL}
        from ebbtide.clients.kubernetes import Api
        Api.of_token("https://localhost", "", "token")
        before = "cryptography.x509" in sys.modules
        from google.auth.transport.requests import AuthorizedSession
        print(json.dumps([before, "cryptography.x509" in sys.modules, AuthorizedSession.__mro__[1].__name__]))
    """)
    assert (before, after, kind) == (False, True, "Session")


def test_functions_are_functions() -> None:
    """A function's module has the function's name, and the package has the function."""
    kinds = _run(f"""
        import json
        {_INSTALL}
        from pulumi_gcp import compute
        from pulumi_gcp.compute import get_network, get_network_output
        import pulumi_gcp.compute.get_zones
        functions = [get_network, get_network_output, compute.get_zones]
        print(json.dumps([type(item).__name__ for item in functions]))
    """)
    assert kinds == ["function", "function", "function"]


def test_the_whole_package_is_loaded_on_request() -> None:
    """A star import, a directory, and a name that no module is called after load the package whole."""
    answers = _run(f"""
        import json
        {_INSTALL}
        from pulumi_gcp import compute
        compute.Network
        names = dir(compute)
        space = {{}}
        exec("from pulumi_gcp.compute import *", space)
        try:
            compute.NoSuchThing
        except AttributeError as error:
            message = str(error)
        print(json.dumps([len(names) > 1000, "RouterNat" in space, message]))
    """)
    assert answers == [True, True, "module 'pulumi_gcp.compute' has no attribute 'NoSuchThing'"]


def test_a_package_that_is_loaded_stays() -> None:
    """Installing twice, or late, changes nothing."""
    same = _run(f"""
        import json, sys
        from pulumi_gcp import compute
        compute.Network
        before = sys.modules["pulumi_gcp.compute"]
        {_INSTALL}
        {_INSTALL}
        from pulumi_gcp import compute as again
        again.Network
        print(json.dumps(sys.modules["pulumi_gcp.compute"] is before and again.Network is compute.Network))
    """)
    assert same is True


def test_only_named_classes_are_created() -> None:
    """The modules of a network name few of their package's classes of nested inputs."""
    created, defined = _run(f"""
        import json
        {_INSTALL}
        from pulumi_gcp import compute
        compute.Network, compute.Subnetwork, compute.Router, compute.RouterNat
        inputs = vars(compute._inputs)
        print(json.dumps([len(inputs.keys() & set(inputs["_names"])), len(inputs["_names"])]))
    """)
    assert 0 < created < defined / 20
