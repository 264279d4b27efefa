"""Put the recorded calls of a cloud's provider (`ebbtide up --record`) to the fake clouds, and compare the
answers field by field with theirs, `noted.csv`, `read_back.csv` and the tables of answers.

The calls are repeated in the order in which they ended, so that whatever a request refers to exists. Ids that
the real cloud chose are translated into those that the fake one chose for the same resource.
"""

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, cast

from ebbtide.analysis.providers.property_path import differences, plain_path, top_level
from ebbtide.analysis.recording import assumed_azure, assumed_gcp
from ebbtide.analysis.recording.assumption_tables import (
    ADDRESS,
    CERTIFICATE_BASE64,
    WORD,
    Question,
    ResourceTemplate,
    uuid_for,
)
from ebbtide.analysis.recording.provider_calls import ProviderCall, read
from ebbtide.analysis.recording.values import leaves
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.text import several
from ebbtide.values.documents import DocumentPart
from ebbtide.values.paths import is_within, path_keys
from ebbtide_rehearsal.cloud.azure.arm import DEPLOYER
from ebbtide_rehearsal.cloud.azure.identities import ASSIGNMENT, know
from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.fake_provider import rows_of
from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.provider import Call, Endpoint, Provider, Read, RefusedError
from ebbtide_rehearsal.cloud.store import Store

VERSION: Final = "ebbtide.dev/real-cloud/v1"


class Difference(DocumentPart):
    """A field in which a recorded answer and ours differ."""

    type: str
    """The resource's type."""
    resource: str
    """The resource's logical name."""
    call: str
    """The call, such as `Create`."""
    path: str
    """The field's property path in the answer; `error` for a call that one of both refuses."""
    real: object
    """The recorded value; null for none."""
    ours: object
    """Our value; null for none."""
    source: str
    """The source of our value: a table, or the fake cloud's code."""
    file: str
    """The recording's file."""


class ProviderVersion(DocumentPart):
    """The version of a recorded provider, which differs from that of the installed SDK."""

    package: str
    """The provider's package, such as `gcp`."""
    recorded: str
    """The version of the provider in the recording."""
    ours: str
    """The version of the installed SDK, which the fake cloud has."""


class Comparison(DocumentPart):
    """Differences between a recording and the fake clouds."""

    version: str
    """The version of this format."""
    recording: str
    """The directory of the recording."""
    compared: int
    """The number of calls that were compared."""
    skipped: int
    """The number of calls about resources whose creation was not recorded, or that belong to one."""
    versions: tuple[ProviderVersion, ...]
    """Versions of recorded providers that differ from ours, which may be why fields differ."""
    differences: tuple[Difference, ...]
    """The fields that differ, in the order of the calls."""


_SPEED: Final = 1e6
"""Simulated seconds per second: delays of the fake clouds have passed at the next call."""
_BOOKKEEPING: Final = "__"
"""Beginning of names of the providers' own properties, such as `__defaults` of bridged ones."""
_SHORTEST_ID: Final = 6
_FAKE: Final = "fake cloud"
_NOT_FOUND: Final = re.compile(r"\b(?:Error |Status=)404\b")
"""The status of a resource that does not exist, as Google's and Azure's clients write it."""


_TABLES: Final = {"gcp": assumed_gcp, "azure-native": assumed_azure}


class _ControlPlanes:
    """Control planes in name only: see `Clusters`."""

    def __init__(self) -> None:
        self._endpoints: dict[str, Endpoint] = {}

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        self._endpoints[identity] = Endpoint(f"{cloud}-{len(self._endpoints)}.example.com:443", "Q0E=")
        return self._endpoints[identity]

    def endpoint(self, identity: str) -> Endpoint:
        return self._endpoints[identity]

    def delete(self, identity: str) -> None:
        self._endpoints.pop(identity, None)


@dataclass(slots=True)
class _Ours:
    """The fake clouds, and what they have answered.

    Attributes:
        base: their providers without settings, by package.
        by_urn: our ids of created resources, by URN; a replaced pool's changes with the state.
        by_id: the same, by the real id; placeholders in it may be those of another file.
        of_file: the same, of one file.
        translated: the real cloud's texts and ours, of one file.
        providers: configured providers and their settings, by package and connection, of one file.
    """

    store: Store
    base: Mapping[str, Provider]
    by_urn: dict[str, str] = field(default_factory=dict[str, str])
    by_id: dict[str, str] = field(default_factory=dict[str, str])
    of_file: dict[str, str] = field(default_factory=dict[str, str])
    translated: dict[str, str] = field(default_factory=dict[str, str])
    providers: dict[tuple[str, int], tuple[Provider, Mapping[str, Any]]] = field(
        default_factory=dict[tuple[str, int], tuple[Provider, Mapping[str, Any]]]
    )

    def provider(self, call: ProviderCall) -> tuple[Provider, Mapping[str, Any]]:
        """Return the provider of a call, and its settings."""
        return self.providers.get((call.package, call.connection), (self.base[call.package], {}))

    def created(self, call: ProviderCall, identity: str) -> None:
        """Remember our id of a created resource."""
        real = (call.answer or call.partial or {})["id"]
        self.by_urn[call.urn] = self.by_id[real] = self.of_file[real] = identity

    def find(self, call: ProviderCall) -> str | None:
        """Return our id of the resource of a call; None if its creation is not recorded."""
        real = call.request["id"]
        return self.of_file.get(real) or self.by_urn.get(call.urn) or self.by_id.get(real)

    def deleted(self, identity: str) -> None:
        """Forget a resource."""
        for known in (self.by_urn, self.by_id, self.of_file):
            for key in [key for key, item in known.items() if item == identity]:
                del known[key]

    def translate(self, value: Any) -> Any:
        """Return a value with our texts instead of the real cloud's."""
        if isinstance(value, str):
            return self.translated.get(value, value)
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {self.translate(key): self.translate(item) for key, item in items}
        if isinstance(value, list):
            return [self.translate(item) for item in cast("list[Any]", value)]
        return value

    def learn(self, call: ProviderCall, answer: Mapping[str, Any]) -> None:
        """Remember the texts that our cloud has chosen otherwise than the real one."""
        given = {leaf for _, leaf in leaves(dict(call.request)) if isinstance(leaf, str)}
        for path, real, ours in differences(dict(call.answer or {}), dict(answer)):
            if not isinstance(real, str) or not isinstance(ours, str) or real in given:
                continue
            if len(real) >= _SHORTEST_ID and "[" not in real and (path == "id" or is_same(real, ours)):
                self.translated.setdefault(real, ours)


@contextmanager
def _ours() -> Generator[_Ours]:
    with TemporaryDirectory(prefix="ebbtide-") as directory:
        store, planes = Store(Path(directory, "cloud.sqlite"), speed=_SPEED), _ControlPlanes()
        providers: tuple[Provider, ...] = (Gcp(store, planes), AzureProvider(store, planes))
        yield _Ours(store, {provider.package: provider for provider in providers})


def compare(directory: Path) -> Comparison:
    """Compare a recording.

    Raises:
        ProviderCallError: it has no recording, or a file is malformed.
    """
    found: list[Difference] = []
    versions: dict[ProviderVersion, None] = {}
    compared = skipped = 0
    with _ours() as ours:
        for file, calls in read(directory):
            ours.translated, ours.providers, ours.of_file = {}, {}, {}
            for call in calls:
                if call.method == "GetPluginInfo":
                    versions |= dict.fromkeys(_other_version(ours, call))
                    continue
                if call.method == "Configure":
                    provider = ours.base[call.package].configured(call.request["args"])
                    ours.providers[call.package, call.connection] = provider, call.request["args"]
                    continue
                fields = None if call.request.get("preview") else _compared(ours, call)
                if fields is None:
                    skipped += 1
                    continue
                compared += 1
                found.extend(
                    Difference(
                        type=_type(call),
                        resource=_name(call),
                        call=call.method,
                        path=path,
                        real=real,
                        ours=own,
                        source=source,
                        file=file,
                    )
                    for path, real, own, source in fields
                )
    return Comparison(
        version=VERSION,
        recording=str(directory),
        compared=compared,
        skipped=skipped,
        versions=tuple(versions),
        differences=tuple(found),
    )


def _other_version(ours: _Ours, call: ProviderCall) -> Iterator[ProviderVersion]:
    """Yield the version of a recorded provider if it is known and differs from that of the installed SDK."""
    recorded: str = (call.answer or {}).get("version", "").removeprefix("v")
    own = ours.base[call.package].version
    if recorded not in ("", own):
        yield ProviderVersion(package=call.package, recorded=recorded, ours=own)


_Field = tuple[str, Any, Any, str]
"""Path, real value, ours, and the source of ours."""


def _type(call: ProviderCall) -> str:
    return call.urn.split("::")[2].rpartition("$")[2]


def _name(call: ProviderCall) -> str:
    return call.urn.rpartition("::")[2]


def _compared(ours: _Ours, call: ProviderCall) -> list[_Field] | None:
    """Put a call to the fake cloud; return the fields that differ, None if it was not compared."""
    answer_of = _ANSWERS[call.method]
    provider, settings = ours.provider(call)
    request = ours.translate(call.request)
    if call.method == "Create" and _type(call) == ASSIGNMENT:
        request = _introduced(ours, call, request)
    try:
        answer = answer_of(ours, provider, call, request)
    except RefusedError as refused:
        if call.error is None and _is_about_an_older_resource(ours, str(refused)):
            return None
        return [] if _matches(call.error, str(refused)) else [("error", call.error, str(refused), _FAKE)]
    except Exception as error:  # noqa: BLE001 - a recording of a real cloud may have what no test has
        return [("error", call.error, f"{type(error).__name__}: {error}", _FAKE)]
    if answer is None:
        return None
    if call.error is not None:
        if call.method == "Create" and call.partial is not None:
            ours.created(call, answer["id"])  # later calls are about the resource that the failed one left
        return [("error", call.error, None, _FAKE)]
    fields = list(_differing(call, answer))
    if call.method == "Create":
        ours.created(call, answer["id"])
        ours.learn(call, answer)
        fields.extend(_unfit(call, settings, {path for path, *_ in fields}))
    return fields


def _introduced(ours: _Ours, call: ProviderCall, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let the principal of a role assignment exist: a user, a group, or the account that ran the program."""
    principal = call.request["properties"]["principalId"]
    if principal in ours.translated:
        return request
    if (call.answer or {}).get("properties", {}).get("principalType") == "ServicePrincipal":
        ours.translated[principal] = DEPLOYER
        return ours.translate(call.request)
    know(ours.store, [principal])
    return request


def _is_about_an_older_resource(ours: _Ours, refusal: str) -> bool:
    """Return whether a request names a resource whose creation is not recorded, such as a pool's cluster."""
    return _NOT_FOUND.search(refusal) is not None and not any(
        re.search(rf"{re.escape(identity)}(?![\w/-])", refusal) for identity in ours.by_urn.values()
    )


def _matches(real: str | None, ours: str) -> bool:
    return real is not None and is_same(real.strip(), ours.strip())


def _call(call: ProviderCall, request: Mapping[str, Any]) -> Call:
    ignored = tuple(request.get("ignoreChanges", ()))
    return Call(_type(call), _name(call), call.urn, ignored=ignored, inputs=request.get("inputs", {}))


_Request = Mapping[str, Any]


def _check(_: _Ours, provider: Provider, call: ProviderCall, request: _Request) -> dict[str, Any]:
    inputs, failures = provider.check(_call(call, request), request["olds"], request["news"])
    return {
        "inputs": inputs,
        "failures": [{"property": failure.property, "reason": failure.reason} for failure in failures],
    }


def _diff(_: _Ours, provider: Provider, call: ProviderCall, request: _Request) -> dict[str, Any]:
    old = Read(request["id"], request["old_inputs"], request["olds"])
    change = provider.diff(_call(call, request), request["id"], old, request["news"])
    return {
        "changes": "DIFF_SOME" if change.changed else "DIFF_NONE",
        "diffs": sorted(change.changed),
        "replaces": sorted(change.replaces),
        "deleteBeforeReplace": change.delete_first,
    }


def _create(_: _Ours, provider: Provider, call: ProviderCall, request: _Request) -> dict[str, Any]:
    made = provider.create(_call(call, request), request["properties"])
    return {"id": made.id, "properties": made.state}


def _read(ours: _Ours, provider: Provider, call: ProviderCall, request: _Request) -> dict[str, Any] | None:
    identity = ours.find(call)
    if identity is None:
        return None
    found = provider.read(_call(call, request), identity, request["properties"])
    if found is None:
        return {}
    return {"id": found.id, "properties": found.state, "inputs": found.inputs}


def _update(ours: _Ours, provider: Provider, call: ProviderCall, request: _Request) -> dict[str, Any] | None:
    identity = ours.find(call)
    if identity is None:
        return None
    old = Read(identity, request["old_inputs"], request["olds"])
    return {"properties": provider.update(_call(call, request), identity, old, request["news"])}


def _delete(ours: _Ours, provider: Provider, call: ProviderCall, request: _Request) -> dict[str, Any] | None:
    identity = ours.find(call)
    if identity is None:
        return None
    provider.delete(_call(call, request), identity, request["properties"])
    ours.deleted(identity)
    return {}


_ANSWERS: Final[Mapping[str, Callable[[_Ours, Provider, ProviderCall, _Request], dict[str, Any] | None]]] = {
    "Check": _check,
    "Diff": _diff,
    "Create": _create,
    "Read": _read,
    "Update": _update,
    "Delete": _delete,
}


def _differing(call: ProviderCall, answer: Mapping[str, Any]) -> Iterator[_Field]:
    """Yield the fields in which a recorded answer and ours differ."""
    real = dict(call.answer or {})
    if call.method == "Diff":
        real |= {name: sorted({top_level(path) for path in real[name]}) for name in ("diffs", "replaces")}
    for path, recorded, own in differences(real, dict(answer)):
        if any(str(key).startswith(_BOOKKEEPING) for key in path_keys(path)) or is_same(recorded, own):
            continue
        if not (is_absent(recorded) or is_absent(own)) and is_only_the_clouds(_template(call, path)):
            continue
        yield path, recorded, own, _source(call, path)


def _template(call: ProviderCall, path: str) -> Any:
    """Return the template of a property in the table of answers; None for none."""
    template: Any = _TABLES[call.package].RESOURCES.get(_type(call), ResourceTemplate("")).outputs
    for key in path_keys(path.removeprefix("properties.")):
        template = (
            cast("Mapping[str, Any]", template).get(str(key)) if isinstance(template, Mapping) else None
        )
    return template


def _file(call: ProviderCall) -> str:
    """Return the name of the file with the tables of a call's cloud."""
    return f"{_TABLES[call.package].__name__.rpartition('.')[2]}.py"


def _source(call: ProviderCall, path: str) -> str:
    """Return where our value of a property is from."""
    _, _, inner = plain_path(path).partition(".")
    if call.method in ("Create", "Read", "Update"):
        if path == "id" or _template(call, path) is not None:
            return _file(call)
        if any(is_within(inner, row) for row in rows_of(_type(call))):
            return "read_back.csv"
        if any(is_within(inner, row) for row in constraints_of(_type(call)).fills):
            return "noted.csv"
    return _FAKE


def _unfit(call: ProviderCall, settings: Mapping[str, Any], reported: set[str]) -> Iterator[_Field]:
    """Yield the fields of a created resource that do not fit the preview's assumptions."""
    tables = _TABLES[call.package]
    if _type(call) not in tables.RESOURCES or call.answer is None:
        return
    question = Question(
        token=_type(call), inputs=call.request["properties"], provider=settings, name=_name(call)
    )
    assumed = tables.TABLES.answer(question)
    real = dict(leaves(call.answer["properties"], "properties"))
    for path, own in (("id", assumed.id), *leaves(dict(assumed.outputs), "properties")):
        recorded = call.answer["id"] if path == "id" else real.get(path)
        if path not in reported and not fits_assumption(recorded, own):
            yield path, recorded, own, _file(call)


_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_CHOSEN: Final = (
    (re.compile(_UUID), "{uuid}"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?!/)"), "{address}"),
    (re.compile(r"(?<![0-9a-z])(?=[0-9a-f]*\d)[0-9a-f]{7,}(?![0-9a-z])"), "{random}"),
)
"""Values that a cloud or its provider chooses: UUIDs, addresses, suffixes of names, numbers of projects."""

_REMOVED: Final = re.compile(r"\\\[[a-z-]+\\\]")
"""A secret that scrubbing has removed, in an escaped text."""

_ASSUMED: Final = re.compile(
    rf"{re.escape(uuid_for(''))[:-12]}[0-9a-f]{{12}}|{re.escape(ADDRESS)}|0{{12}}|{WORD}"
)
_ONLY_THE_CLOUDS: Final = re.compile(
    r"\{(address|certificate|dnsEndpoint|number|suffix|tenantId|nodeResourceGroup|uuid_\w+)\}"
)
"""Facts of the templates of answers that a cloud alone knows."""


def is_absent(value: Any) -> bool:
    """Return whether a value is as good as none: providers omit empty ones, or do not."""
    return value is None or value in ("", [], {})


def is_same(real: Any, ours: Any) -> bool:
    """Return whether a recorded value and ours are equal, but for what the cloud chooses."""
    if is_absent(real) and is_absent(ours):
        return True
    if isinstance(real, str) and not is_absent(ours):
        chosen = _chosen(str(ours))
        pattern = _REMOVED.sub(".+", re.escape(_chosen(real)))
        return re.fullmatch(pattern, chosen, re.DOTALL) is not None
    return type(real) is type(ours) and real == ours


def fits_assumption(real: Any, assumed: Any) -> bool:
    """Return whether a recorded value fits the value that a preview assumes."""
    if not isinstance(real, str) or not isinstance(assumed, str):
        return is_same(real, assumed)
    if assumed == CERTIFICATE_BASE64 or is_same(real, assumed):
        return True
    pieces = _ASSUMED.split(assumed)
    return re.fullmatch(".+".join(map(re.escape, pieces)), real) is not None


def is_only_the_clouds(template: Any) -> bool:
    """Return whether a template states nothing about a value but that there is one."""
    return isinstance(template, str) and _ONLY_THE_CLOUDS.fullmatch(template) is not None


def _chosen(text: str) -> str:
    for pattern, word in _CHOSEN:
        text = pattern.sub(word, text)
    return text


_LONGEST = 200


def text(comparison: Comparison) -> str:
    """Return the comparison as text."""
    return "\n".join((*_lines(comparison), ""))


def _lines(comparison: Comparison) -> Iterator[str]:
    for (type_, resource, call, file), fields in groupby(comparison.differences, _group):
        yield f"{type_} {resource}, {call} ({file}):"
        for item in fields:
            yield f"  {item.path}"
            yield f"    real: {_value(item.real)}"
            yield f"    ours: {_value(item.ours)} ({item.source})"
    count = len(comparison.differences)
    found = f"{count} fields differ" if count > 1 else f"{'one' if count else 'no'} field differs"
    yield f"{several(comparison.compared, 'recorded call')} compared: {found}."
    if comparison.skipped:
        calls = several(comparison.skipped, "call")
        yield f"Not compared: {calls} about resources that were created before the recording."
    for version in comparison.versions:
        yield (
            f"The recording is of the provider {version.package} {version.recorded}, and the fake cloud of "
            f"{version.ours}: differences may come from the provider."
        )


def _group(item: Difference) -> tuple[str, str, str, str]:
    return item.type, item.resource, item.call, item.file


def _value(value: object) -> str:
    if value is None:
        return "none"
    written = json.dumps(value, sort_keys=True)
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}…"
