"""A new project: the template's files, with the answers to three questions or an adopted cluster in them."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS, region_of
from ebbtide.declaration.catalog.locations import Locations, is_ai_zone
from ebbtide.declaration.catalog.machine_offers import MachineOffer, accelerator_types, machine_offers
from ebbtide.declaration.catalog.machines import find_machine, machine_names
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import advice, declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.errors import EbbtideError
from ebbtide.text import and_list, did_you_mean, or_list, requirements
from ebbtide.values.cloud_kind import CloudKind, by_cloud

if TYPE_CHECKING:
    from ebbtide.operations.adopting.steps import Adopted, Request

STACK: Final = "dev"
"""The stack of the template, whose workflows and tests name it."""

_PACKAGE: Final = Path(__file__).parents[1]
_COUNTED: Final = re.compile(r"(?:(?P<count>\d+) *[x*] *)?(?P<name>.+)", re.IGNORECASE)
_LEAST_VCPUS: Final = 4
_LEAST_MEMORY_GIB: Final = 12
"""Of a machine that is chosen for an accelerator, for each of its accelerators."""
_LONGEST_NAME: Final = 30
_BACKENDS: Final = ("gs://", "azblob://", "s3://", "file://", "https://")
_SECRETS_PROVIDERS: Final = ("gcpkms://", "azurekeyvault://", "awskms://", "hashivault://")
_OPTIONS: Final[Mapping[str, str]] = {
    "cloud.project": "--project",
    "cloud.subscription": "--subscription",
    "cloud.location": "--location",
    "owner": "--owner",
}
"""Options by the field of the declaration that they set."""


class InitError(EbbtideError):
    """An answer is unusable, or a file exists; nothing was written."""

    rule = "init"


def machines_of(cloud: CloudKind, written: str) -> list[MachineOffer]:
    """Return the machine types of an answer, whose items have commas between them; see `machine_offer`.

    Raises:
        InitError: it has none, or some that the cloud has not; the message has every one.
    """
    offers: list[MachineOffer] = []
    problems: list[str] = []
    for item in filter(None, map(str.strip, written.split(","))):
        try:
            offers.append(machine_offer(cloud, item))
        except InitError as error:
            problems.append(str(error))
    if problems or not offers:
        raise InitError("\n".join(problems) or "--machines: it names no machine. Write one, such as t4.")
    return offers


def machine_offer(cloud: CloudKind, written: str) -> MachineOffer:
    """Return the machine type that an item of an answer names.

    Args:
        written: a machine type, such as `n1-standard-4`; or an accelerator with an optional count, such as
            `t4` or `2 x L4`, for the machine with it that is cheapest on spot capacity and has 4 vCPUs and
            12 GiB for each accelerator. Without a count it is the smallest one.

    Raises:
        InitError: the cloud has no such machine type.
    """
    names = {name.lower(): name for name in machine_names(cloud)}
    if name := names.get(written.lower()):
        return next(offer for offer in machine_offers(cloud) if offer.machine == name)
    match = _COUNTED.fullmatch(written)
    accelerator = match["name"] if match else written
    offers = machine_offers(cloud, gpu=accelerator) if match else []
    if not offers:
        raise InitError(_unknown(cloud, written, accelerator))
    count = int(match["count"]) if match and match["count"] else min(offer.count for offer in offers)
    fitting = [offer for offer in offers if offer.count == count]
    if not fitting:
        counts = or_list(sorted({offer.count for offer in offers}))
        raise InitError(
            f"--machines: no machine type of {cloud.upper()} has {count} {offers[0].accelerator}. Write "
            f"{counts} of them."
        )
    ample = [
        offer
        for offer in fitting
        if offer.vcpus >= _LEAST_VCPUS * count and offer.memory_gib >= _LEAST_MEMORY_GIB * count
    ]
    return min(ample or fitting, key=lambda offer: (offer.spot is None, offer.spot or offer.on_demand or 0))


def _unknown(cloud: CloudKind, text: str, accelerator: str) -> str:
    """Return the message about an unknown machine type."""
    for other in CloudKind:
        if other is not cloud and find_machine(other, text):
            return f"--machines: {text} is a machine type of {other.upper()}, not of {cloud.upper()}."
    known = (*machine_names(cloud), *accelerator_types(cloud))
    near = did_you_mean(text, known)
    near = did_you_mean(accelerator, known) if near == "." else near
    return (
        f"--machines: {cloud.upper()} has no machine type or accelerator {text}{near} `ebbtide machines "
        f"--cloud {cloud.value}` lists them."
    )


def location(cloud: CloudKind, offers: Sequence[MachineOffer]) -> str:
    """Return a zone on Google Cloud, or a region on Azure, where all machines are offered: the template's
    default, else one in a region of the offers' prices, else the first.

    Raises:
        InitError: no location offers all of them.
    """
    locations = Locations(cloud)
    candidates = [
        name
        for name in locations.names()
        if (cloud is CloudKind.AKS or name != region_of(name)) and not is_ai_zone(name)
    ]
    default = _template_settings(cloud)["template"]["config"]["ebbtide:location"]["default"]
    regions = [offer.region for offer in offers]
    candidates.sort(key=lambda name: (name != default, region_of(name) not in regions))
    for name in candidates:
        if all(_is_offered(locations, offer, name) for offer in offers):
            return name
    rarest = min((offer for offer in offers if offer.locations), key=lambda offer: len(offer.locations))
    raise InitError(
        f"--machines: no location offers all of these: {rarest.machine} is only in "
        f"{', '.join(rarest.locations)}. Declare it in a project of its own."
    )


def offers_in(location: str, offers: Sequence[MachineOffer]) -> list[MachineOffer]:
    """Return the offers with the prices of a location's region."""
    return [
        next(
            (
                own
                for own in machine_offers(offer.cloud, gpu=offer.accelerator, region=region_of(location))
                if (own.machine, own.accelerator, own.count)
                == (offer.machine, offer.accelerator, offer.count)
            ),
            offer,
        )
        for offer in offers
    ]


def _is_offered(locations: Locations, offer: MachineOffer, name: str) -> bool:
    machine = find_machine(offer.cloud, offer.machine)
    offering = locations.offering(machine.family if machine else "", offer.accelerator)
    return offering is None or locations.offers(offering, name, offer.machine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers that a project is made of.

    Attributes:
        account: Google Cloud project, or Azure subscription.
        machines: machine types of the work pools.
        location: zone or region.
        backend: URL of the state's backend; empty for the one that `pulumi` is logged in to.
        secrets_provider: URL of the key that encrypts the state's secrets; empty for the backend's default.
    """

    cloud: CloudKind
    account: str
    machines: Sequence[MachineOffer]
    location: str
    owner: str
    backend: str = ""
    secrets_provider: str = ""


def project_files(name: str, answers: Answers) -> dict[str, str]:
    """Return the texts of a project's files by their paths."""
    description = f"{_template_settings(answers.cloud)['template']['description']}."
    files = _with_settings(_texts(template(answers.cloud)), name, description, answers.backend)
    pools = list(_pools(answers))
    stack_file = f"Pulumi.{STACK}.yaml"
    files[stack_file] = _stack_file(files[stack_file], answers, pools)
    return files


def _texts(root: Path) -> dict[str, str]:
    """Return the texts of a directory's files by their paths."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _with_settings(texts: Mapping[str, str], name: str, description: str, backend: str) -> dict[str, str]:
    """Return a template's files with the settings that `pulumi new` would write."""
    files = dict(texts)
    for path in ("Pulumi.yaml", "README.md"):
        files[path] = files[path].replace("${PROJECT}", name).replace("${DESCRIPTION}", description)
    files["Pulumi.yaml"] = files["Pulumi.yaml"].partition("template:\n")[0] + (
        f"backend:\n  url: {json.dumps(backend)}\n" if backend else ""
    )
    files["requirements.txt"] = _requirements(files["requirements.txt"])
    return files


def adopted_project(
    directory: Path,
    request: "Request",
    *,
    superfluous: Sequence[str] = (),
    backend: str = "",
    secrets_provider: str = "",
) -> "tuple[dict[str, str], Adopted]":
    """Return the texts of a project's files by their paths, for an existing cluster, and the proof.

    Args:
        directory: the directory that the project will have; its name is the project's.
        request: the cluster, and how it is adopted; its stack and directory are replaced.
        superfluous: options that were given, and whose values an existing cluster has.
        backend: as in `Answers`.
        secrets_provider: as in `Answers`.

    Raises:
        InitError: the cluster cannot be read or adopted, an option is invalid or a file exists; the message
            has every fault.
        CloudApiError: the cloud rejects the request or does not answer.
    """
    from ebbtide.operations.adopting import steps  # noqa: PLC0415 - loads Pulumi

    problems = [f"{option}: the existing cluster has its own. Omit the option." for option in superfluous]
    problems += _wrong_urls(backend, secrets_provider)
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as temporary:
        root = Path(temporary)
        request = replace(request, stack=STACK, root=root, overwrite=True)
        stack_file = request.stack_file.name
        try:
            found = steps.find(request)
        except steps.AdoptionError as error:
            found, problems = None, [str(error), *problems]
        cloud = found.cloud if found and found.cloud else CloudKind.GKE
        own = ("Pulumi.pr.yaml", ".github/stacks.json", stack_file)  # of the template's cluster
        texts = {path: text for path, text in _texts(template(cloud)).items() if path not in own}
        texts |= _texts(template(cloud).parent / "adopted")
        stack = {"stack": STACK, "cloud": cloud.value, "environment": STACK, "permanent": True}
        texts[".github/stacks.json"] = f"{json.dumps([stack])}\n"
        problems += _existing(directory, [*texts, stack_file, steps.default_file(STACK)])
        if not found or problems:
            raise InitError("\n".join(problems))
        description = f"The cluster {found.clusters[0].name} in {found.account}."
        files = _with_settings(texts, project_name(directory), description, backend)
        for path in ("Pulumi.yaml", "__main__.py"):
            (root / path).write_text(files[path], encoding="utf-8")
        if secrets_provider:
            request.stack_file.write_text(f"secretsprovider: {json.dumps(secrets_provider)}\n", "utf-8")
        adopted = steps.prove(request, found)
        written = steps.write_files(request, adopted)
        return files | {path.name: path.read_text(encoding="utf-8") for path in written}, adopted


def template(cloud: CloudKind) -> Path:
    """Return the directory of a cloud's template: in the package, or in the checkout that it is run from."""
    packaged = _PACKAGE / "template" / cloud.value
    return packaged if packaged.is_dir() else _PACKAGE.parent / "template" / cloud.value


@cache
def _template_settings(cloud: CloudKind) -> dict[str, Any]:
    return yaml.safe_load((template(cloud) / "Pulumi.yaml").read_text(encoding="utf-8"))


def _pools(answers: Answers) -> Iterator[dict[str, Any]]:
    """Yield the work pools: spot, from zero nodes to the maximum of the template's pools."""
    text = (template(answers.cloud) / f"Pulumi.{STACK}.yaml").read_text(encoding="utf-8")
    declared = yaml.safe_load(text)["config"]["ebbtide:cluster"]["pools"]
    largest = [pool["nodes"]["max"] for pool in declared if pool.get("capacity") == "spot"]
    names: set[str] = set()
    for offer in answers.machines:
        machine = find_machine(answers.cloud, offer.machine)
        attached = offer.accelerator and not (machine and machine.accelerator)
        count = {"count": offer.count} if offer.count > 1 else {}
        yield {
            "name": _pool_name(answers.cloud, offer.accelerator, names),
            "machine": offer.machine,
            **({"accelerator": {"type": offer.accelerator, **count}} if attached else {}),
            "capacity": "spot",
            "nodes": {"max": min(largest) if offer.accelerator else max(largest)},
        }


def _pool_name(cloud: CloudKind, accelerator: str, names: set[str]) -> str:
    """Return a new name of a pool, such as `t4-spot`, and add it to the others."""
    parts = [part for part in accelerator.split("-") if part not in ("nvidia", "amd", "tesla")]
    hyphen = by_cloud(gke="-", aks="")[cloud]  # AKS docs, create-node-pools: letters and digits
    base = f"{parts[0] if accelerator else 'cpu'}{hyphen}spot"
    name = next(
        name
        for number in range(1, len(names) + 2)
        if (name := base if number == 1 else f"{base}{hyphen}{number}") not in names
    )
    names.add(name)
    return name


def _stack_file(text: str, answers: Answers, pools: Sequence[Mapping[str, Any]]) -> str:
    """Return the stack's file with the settings that `pulumi new` asks for, and these work pools in
    place of its own."""
    word = CLOUD_SPECS[answers.cloud].account
    settings = {"owner": answers.owner, word: answers.account, "location": answers.location}
    lines = "".join(f"  ebbtide:{key}: {json.dumps(value)}\n" for key, value in settings.items())
    provider = (
        f"secretsprovider: {json.dumps(answers.secrets_provider)}\n" if answers.secrets_provider else ""
    )
    text = text.replace("config:\n", f"{provider}config:\n{lines}", 1)
    head, line, rest = text.partition("    pools:\n")
    kept = [own for own in rest.splitlines(keepends=True) if "role: system" in own]
    written = [
        f"      - {yaml.safe_dump(dict(pool), default_flow_style=True, sort_keys=False, width=1000)}"
        for pool in pools
    ]
    return "".join((head, line, *kept, *written))


def installed_wheels() -> list[Path]:
    """Return the wheel that Ebbtide was installed from, and that of the rehearsal beside it; empty if it was
    not installed from a wheel, or if it no longer exists."""
    wheel = Path(next(iter(requirements([""])), "").partition("[")[0])
    return sorted(wheel.parent.glob(wheel.name.replace("-", "*-", 1))) if wheel.suffix == ".whl" else []


def _requirements(text: str) -> str:
    """Return the requirements: the wheel beside them, or the Git repository that Ebbtide came from."""
    (extras,) = re.findall(r"\[(.*)\]", text)
    own = next(iter(requirements(extras.split(","))), "")
    return f"{own}\n" if " @ " in own else text


def check(files: Mapping[str, str], answers: Answers) -> list[str]:
    """Validate the declarations of both stacks; return the warnings.

    Args:
        answers: the answers that they were made of.

    Raises:
        InitError: an answer is invalid; the message has every fault.
    """
    problems = [*_wrong_urls(answers.backend, answers.secrets_provider)]
    warnings: tuple[str, ...] = ()
    try:
        warnings = tuple(str(fault) for fault in advice(_declared(files, answers)))
    except DeclarationError as error:
        for fault in error.faults:
            option = _OPTIONS.get(fault.path, "--machines" if fault.path.startswith("pools") else fault.path)
            problems.append(f"{option}: {fault.problem} {fault.consequence} {fault.fix}")
    if problems:
        raise InitError("\n".join(problems))
    return [*warnings]


def _wrong_urls(backend: str, secrets_provider: str) -> Iterator[str]:
    for option, url, known in (
        ("--backend", backend, _BACKENDS),
        ("--secrets-provider", secrets_provider, _SECRETS_PROVIDERS),
    ):
        if url and not any(url.startswith(scheme) and url != scheme for scheme in known):
            yield f"{option}: {url} is no URL that Pulumi knows there. Write one with {or_list(known)}."


def _declared(files: Mapping[str, str], answers: Answers) -> Cluster:
    """Declare the stack `dev`, and that of a pull request, which extends it."""
    word = CLOUD_SPECS[answers.cloud].account
    cloud = {"kind": answers.cloud.value, word: answers.account, "location": answers.location}
    clusters: list[Cluster] = []
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as directory:
        for file in ("Pulumi.yaml", f"Pulumi.{STACK}.yaml", "Pulumi.pr.yaml"):
            Path(directory, file).write_text(files[file], encoding="utf-8")
        for stack in (STACK, "pr"):
            read = read_stack(Path(directory), stack)
            written = {"owner": answers.owner, "cloud": cloud, **read.declaration()}
            clusters.append(declare(written, default_name=read.cluster_name))
    return clusters[0]


def project_name(directory: Path) -> str:
    """Return the name of the project in a directory: its own, as far as a cluster's name can have it."""
    letters = re.sub(r"[^a-z0-9]+", "-", directory.resolve().name.lower()).strip("-")
    return letters[:_LONGEST_NAME].strip("-") if letters[:1].isalpha() else f"ml-{letters}".strip("-")


def _existing(directory: Path, paths: Iterable[str]) -> Iterator[str]:
    existing = [path for path in paths if (directory / path).is_symlink() or (directory / path).exists()]
    if existing:
        yield (
            f"{and_list(existing)} {'exists' if len(existing) == 1 else 'exist'} in {directory.resolve()}: "
            "nothing was written. Name another directory, or move them away."
        )


def write_project(directory: Path, files: Mapping[str, str]) -> list[Path]:
    """Write a project's files, and copy the wheels that Ebbtide was installed from.

    Args:
        directory: the project's directory, which is created if it does not exist.
        files: texts by path.

    Returns:
        The wheels in the directory; empty if there are none to copy.

    Raises:
        InitError: files exist; nothing was written.
        OSError: a file cannot be written; those that were written are deleted.
    """
    for problem in _existing(directory, files):
        raise InitError(problem)
    wheels = installed_wheels()
    written: list[Path] = []
    try:
        for path, text in files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                written.append(file)
                stream.write(text)
        for wheel in wheels:
            if not (directory / wheel.name).exists():
                written.append(directory / wheel.name)
                shutil.copyfile(wheel, directory / wheel.name)
    except OSError:
        for file in written:
            file.unlink(missing_ok=True)
        raise
    return [directory / wheel.name for wheel in wheels]
