"""The `init` command. Its dependencies are imported on execution."""

import getpass
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ebbtide.cli.adopt import show
from ebbtide.cli.consoles import console, say
from ebbtide.cli.options import ClusterContext, Documents, ExistingCluster, PoolsOnly, ResourceGroup
from ebbtide.errors import EbbtideError
from ebbtide.text import and_list, requirements
from ebbtide.values.cloud_kind import CloudKind, by_cloud

if TYPE_CHECKING:
    from ebbtide.declaration.catalog.machine_offers import MachineOffer
    from ebbtide.operations.adopting.steps import Request

_T = TypeVar("_T")


def init(  # noqa: PLR0913 - an option for each answer
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of the project.", show_default=False)
    ] = Path(),
    *,
    cloud: Annotated[CloudKind | None, typer.Option(help="Cloud.")] = None,
    project: Annotated[str, typer.Option(help="Google Cloud project.")] = "",
    subscription: Annotated[str, typer.Option(help="Azure subscription.")] = "",
    machines: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Machine types or accelerators, such as `n2-standard-8,t4` or `2 x l4`."
        ),
    ] = "",
    location: Annotated[
        str,
        typer.Option(help="Zone or region; by default one that offers the machines, or that of --cluster."),
    ] = "",
    owner: Annotated[
        str,
        typer.Option(help="Label for the bill; by default your login name, or that of an existing cluster."),
    ] = "",
    from_cluster: Annotated[
        bool,
        typer.Option(
            "--from-cluster",
            help="Declare a cluster that exists, as `ebbtide adopt` does, with the next five options.",
        ),
    ] = False,
    cluster: ExistingCluster = None,
    context: ClusterContext = None,
    from_: Documents = None,
    resource_group: ResourceGroup = None,
    pools_only: PoolsOnly = False,
    backend: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Backend of the state, such as gs://BUCKET; by default that of `pulumi login`.",
        ),
    ] = "",
    secrets_provider: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Key for the state's secrets, such as gcpkms://…; by default a passphrase."
        ),
    ] = "",
) -> None:
    """Write a project for a new or existing cluster.

    The cloud, the project or subscription and the machines are asked for on a terminal, unless they are
    options. Work pools are spot and have no node when nothing runs. The files are those of Ebbtide's
    template: program, stack, requirements, workflows. No file is overwritten.

    With --from-cluster, the stack declares a cluster that exists, and nothing is asked. It is read with
    --project or --subscription and --cluster, or from files with --from. Nothing in the cloud is changed.
    """
    if from_cluster or cluster or context or from_ or resource_group or pools_only:
        from ebbtide.operations.adopting.steps import Request  # loads Pulumi

        request = Request(
            stack="",
            root=directory,
            files=tuple(from_ or ()),
            cluster=cluster,
            context=context,
            location=location or None,
            project=project or None,
            subscription=subscription or None,
            resource_group=resource_group,
            owner=owner or None,
            pools_only=pools_only,
        )
        given = {"--cloud": cloud, "--machines": machines}
        _write_adopted(directory, request, [it for it in given if given[it]], backend, secrets_provider)
        return
    from ebbtide.operations.init import (
        STACK,
        Answers,
        check,
        offers_in,
        project_files,
        project_name,
        write_project,
    )
    from ebbtide.operations.init import location as default_location

    kind, account, offers = _answers(cloud, project, subscription, machines)
    answers = Answers(
        cloud=kind,
        account=account,
        machines=offers,
        location=location or default_location(kind, offers),
        # The login name, as far as a label can have it.
        owner=owner or re.sub(r"[^a-z0-9]+", "-", getpass.getuser().lower()).strip("-") or "my-team",
        backend=backend,
        secrets_provider=secrets_provider,
    )
    files = project_files(project_name(directory), answers)
    warnings = check(files, answers)
    wheels = write_project(directory, files)
    say(f"Wrote {len(files)} files to {directory.resolve()}, for {kind.upper()} in {answers.location}:")
    for offer in offers_in(answers.location, offers):
        say(f"  {_described(offer)}")
    for warning in warnings:
        say(f"Warning: {warning}")
    _show_next(directory, secrets_provider, f"up {STACK}", has_wheel=bool(wheels))


def _write_adopted(
    directory: Path, request: "Request", superfluous: list[str], backend: str, secrets_provider: str
) -> None:
    """Write the project of an existing cluster."""
    from ebbtide.operations.init import STACK, adopted_project, write_project

    files, adopted = adopted_project(
        directory,
        request,
        superfluous=superfluous,
        backend=backend,
        secrets_provider=secrets_provider,
    )
    wheels = write_project(directory, files)
    show(adopted, console(sys.stdout))
    say(f"Wrote {len(files)} files to {directory.resolve()}. Nothing in the cloud has changed.")
    _show_next(directory, secrets_provider, f"adopt {STACK} --into-state", has_wheel=bool(wheels))


def _answers(
    cloud: CloudKind | None, project: str, subscription: str, machines: str
) -> "tuple[CloudKind, str, list[MachineOffer]]":
    """Return the answers, from options or from the terminal.

    Raises:
        InitError: an option is wrong, or missing without a terminal; the message has all of them.
    """
    from ebbtide.operations.init import InitError, machines_of

    if project and subscription:
        raise InitError("--project is of Google Cloud and --subscription is of Azure: write one of them.")
    implied = CloudKind.GKE if project else CloudKind.AKS if subscription else None
    if cloud and implied and cloud is not implied:
        raise InitError(
            f"{'--project is of GKE' if project else '--subscription is of AKS'}, and --cloud is {cloud}: "
            "write the one that you mean."
        )
    cloud, account = cloud or implied, project or subscription
    of_account = {
        CloudKind.GKE: "--project",
        CloudKind.AKS: "--subscription",
        None: "--project or --subscription",
    }
    required = {"--cloud": cloud, of_account[cloud]: account, "--machines": machines}
    missing = [option for option, value in required.items() if not value]
    if missing and not sys.stdin.isatty():
        raise InitError(
            f"{and_list(missing)} {'is' if len(missing) == 1 else 'are'} missing, and there is no terminal "
            "to ask on: write them as options. An example: --cloud gke --project acme-ml --machines t4."
        )
    cloud = cloud or _asked("Cloud (gke or aks)", _cloud)
    word = by_cloud(gke="Google Cloud project", aks="Azure subscription id")[cloud]
    account = account or _asked(word, str)

    def offers(text: str) -> "list[MachineOffer]":
        return machines_of(cloud, text)

    return cloud, account, offers(machines) if machines else _asked("Machines, such as t4 or 2 x l4", offers)


def _cloud(answer: str) -> CloudKind:
    try:
        return CloudKind(answer.lower())
    except ValueError:
        raise ValueError("Write gke for Google Cloud, or aks for Azure.") from None


def _asked(question: str, parse: Callable[[str], _T]) -> _T:
    """Ask until an answer is valid."""
    while True:
        answer = str(typer.prompt(question)).strip()
        try:
            return parse(answer)
        except (EbbtideError, ValueError) as error:
            say(str(error), err=True)


def _described(offer: "MachineOffer") -> str:
    accelerators = f" with {offer.count} x {offer.accelerator}" if offer.accelerator else ""
    price = f"{offer.spot:.2f} $/h each" if offer.spot else "at an unknown price"
    return f"{offer.machine}{accelerators}: spot, none when nothing runs, {price} in {offer.region}"


def _show_next(directory: Path, secrets_provider: str, last: str, *, has_wheel: bool) -> None:
    """Print the next commands, of which the last is of Ebbtide."""
    from ebbtide.operations.init import STACK

    inside = [] if directory.resolve() == Path.cwd() else [shlex.join(["cd", str(directory)])]
    provider = ["--secrets-provider", secrets_provider] if secrets_provider else []
    first = requirements([""])
    if not has_wheel and first[:1] == ["-e"]:
        checkout = Path(first[1].partition("[")[0]).resolve()
        source, target = shlex.quote(str(checkout)), shlex.quote(str(directory.resolve()))
        say("Ebbtide runs from a checkout here, and the project installs its wheel:")
        say(f"  make -C {source} wheel && cp {source}/dist/ebbtide*.whl {target}")
    say("Next:")
    say(f"  {' && '.join([*inside, 'pulumi install'])}")
    say("  .venv/bin/ebbtide preview")
    say(f"  {shlex.join(['pulumi', 'stack', 'init', STACK, *provider])} && .venv/bin/ebbtide {last}")
