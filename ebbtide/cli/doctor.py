"""The `doctor` and `quota` commands. Their dependencies are imported on execution."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ebbtide.cli.consoles import ExitStatus, console, say, write_json
from ebbtide.cli.options import (
    BackendStack,
    ConfigFile,
    Cwd,
    Format,
    PreviewFormat,
    Stack,
    stack_files,
    stack_name,
)
from ebbtide.errors import EbbtideError

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.analysis.quotas import Quota, QuotaCheck
    from ebbtide.analysis.recording.recording import Recording
    from ebbtide.operations.doctor import Finding
    from ebbtide.values.cloud_kind import CloudKind

    Checks = dict[tuple[CloudKind, str], list[QuotaCheck]]
    """Comparisons of quotas by cloud and account."""

_MARKS: Final = {"ok": "ok", "problem": "PROBLEM", "skipped": "not made"}


def doctor(
    stack: BackendStack = None,
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Make only the checks that need no network.")
    ] = False,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift", help="Check the rights of `ebbtide drift`, which only reads, and name the roles."
        ),
    ] = False,
    format_: Format = PreviewFormat.TEXT,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Check what an update needs: tools, logins, rights, quotas.

    Nothing is changed. Which APIs and permissions a stack needs follows from its resources. A problem is
    printed with the command that fixes it, and a check that was not made with the reason. Exit status 1:
    there is a problem.
    """
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.operations.doctor import examine

    name = stack_name(stack, config_file)
    files = stack_files(name.rpartition("/")[2], config_file, cwd)
    recording = record_stack(files)

    def quotas() -> "list[QuotaCheck]":
        return [check for own in quota_checks(files, recording).values() for check in own]

    findings = list(examine(files, recording, name, quotas, offline=offline, reading=drift))
    if format_ is PreviewFormat.JSON:
        write_json([asdict(finding) for finding in findings])
    else:
        _show(findings)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(ExitStatus.FOUND)


def _show(findings: "Sequence[Finding]") -> None:
    """Print a line for each finding, and below a problem its fix; one for checks that were not made for the
    same reason."""
    output = console(sys.stdout)
    for (status, message, fix), own in groupby(findings, key=lambda it: (it.status, it.message, it.fix)):
        checks = ", ".join(finding.check for finding in own)
        output.print(f"{_MARKS[status]:9} {checks}: {message}", markup=False, soft_wrap=True)
        if fix:
            output.print(f"{'':9} {fix}", markup=False, soft_wrap=True)


class AccountError(EbbtideError):
    """A stack names no project or subscription, or several."""

    rule = "account"


def quota(
    stack: Stack = None,
    *,
    format_: Format = PreviewFormat.TEXT,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Compare a stack's quotas with the cloud's limits.

    The quotas are those that its pools need at their maximum node counts. Credentials are needed: log in
    with `gcloud auth application-default login` or `az login`. Exit status 1: a limit is too low, or too much
    of it is in use. The table says which limit to request.
    """
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.analysis.quotas import without_quota
    from ebbtide.analysis.reading.pools import read_pools

    files = stack_files(stack, config_file, cwd)
    recording = record_stack(files)
    checks = quota_checks(files, recording)
    if format_ is PreviewFormat.JSON:
        write_json([_row(account, check) for (_, account), own in checks.items() for check in own])
    else:
        show_checks(files, checks)
        if types := without_quota(read_pools(recording)):
            say(f"Not compared: the quotas of {', '.join(types)}, which are not in Ebbtide's tables.")
    if any(check.request is not None for own in checks.values() for check in own):
        raise typer.Exit(ExitStatus.FOUND)


def quota_checks(files: "StackFiles", recording: "Recording") -> "Checks":
    """Compare a recorded stack's quotas with the limits of its project or subscription.

    Raises:
        EbbtideError: the project or subscription is unknown, or the cloud rejects the request or does not
            answer.
    """
    from ebbtide.analysis.quotas import quotas
    from ebbtide.analysis.reading.pools import read_accounts, read_pools

    needs = quotas(read_pools(recording))
    checks: Checks = {}
    for cloud in dict.fromkeys(need.cloud for need in needs):
        account = _account(cloud, read_accounts(recording, cloud, files.config))
        checks[cloud, account] = _checks(cloud, account, [need for need in needs if need.cloud == cloud])
    return checks


def show_checks(files: "StackFiles", checks: "Checks") -> None:
    """Print the table of each project or subscription, and the limits to request."""
    for (cloud, account), own in checks.items():
        _show_account(cloud, account, own)
    if not checks:
        say(f"The pools of {files.stack} use no quota that Ebbtide knows.")


def _account(cloud: "CloudKind", accounts: list[str]) -> str:
    from ebbtide.declaration.catalog.clouds import CLOUD_SPECS

    word = CLOUD_SPECS[cloud].account
    if len(accounts) > 1:
        raise AccountError(
            f"The stack uses {len(accounts)} {word}s, {', '.join(accounts)}; their quotas cannot be compared "
            "together. Declare each in a stack of its own."
        )
    if not accounts:
        key = CLOUD_SPECS[cloud].account_config
        raise AccountError(
            f"The stack has no {word}, so its quotas are unknown. Set {key} in its configuration."
        )
    return accounts[0]


def _checks(cloud: "CloudKind", account: str, needs: "Sequence[Quota]") -> "list[QuotaCheck]":
    from ebbtide.analysis.quotas import check_quotas
    from ebbtide.clients.clouds.connect import quota_source

    source = quota_source(cloud, account)
    names: dict[str, list[str]] = {}
    for need in needs:
        names.setdefault(need.region, []).append(need.name)
    return check_quotas(needs, {region: source.limits(region, own) for region, own in names.items()})


def _row(account: str, check: "QuotaCheck") -> dict[str, object]:
    quota, limit = check.quota, check.limit
    return {
        "cloud": quota.cloud.value,
        "account": account,
        "region": quota.region,
        "name": quota.name,
        "needed": quota.amount,
        "limit": None if limit.limit == math.inf else limit.limit,
        "usage": limit.usage,
        "verdict": check.verdict,
        "reason": limit.reason,
        "request": check.request,
        "pools": quota.pools,
    }


def _show_account(cloud: "CloudKind", account: str, checks: "Sequence[QuotaCheck]") -> None:
    """Print the table of a project or subscription, and the limits to request."""
    from ebbtide.analysis.preview.fitted_table import plain_table
    from ebbtide.declaration.catalog.clouds import CLOUD_SPECS

    output = console(sys.stdout)
    output.print(f"{cloud}: {CLOUD_SPECS[cloud].account} {account}", soft_wrap=True)
    numbers = ("NEEDED", "LIMIT", "IN USE", "REQUEST")
    table = plain_table("REGION", "QUOTA", *numbers, right=numbers, whole=("REGION",))
    for check in checks:
        limit = map(_number, (check.limit.limit, check.limit.usage))
        request = "?" if check.verdict == "unknown" else str(check.request or "")
        table.add_row(check.quota.region, check.quota.name, str(check.quota.amount), *limit, request)
    output.print(table)
    output.print()
    for line in _remarks(cloud, account, checks):
        output.print(line, soft_wrap=True)


def _remarks(cloud: "CloudKind", account: str, checks: "Sequence[QuotaCheck]") -> list[str]:
    from ebbtide.declaration.catalog.clouds import CLOUD_SPECS

    lines: list[str] = []
    if any(check.request is not None for check in checks):
        page = CLOUD_SPECS[cloud].quota_page.format(account=account)
        lines += ["The usage includes this stack's own nodes. Request at", page]
    known = [check for check in checks if check.verdict != "unknown"]
    if unused := ", ".join(check.quota.name for check in known if check.limit.usage is None):
        lines.append(f"The usage of {unused} is unknown: the Cloud Quotas API has only limits.")
    unknown = [check for check in checks if check.verdict == "unknown"]
    for reason in dict.fromkeys(check.limit.reason for check in unknown):
        names = ", ".join(check.quota.name for check in unknown if check.limit.reason == reason)
        lines.append(f"Unknown: {names}. {reason or 'The API lists no limit; see the console.'}")
    return lines or ["Every limit is high enough."]


def _number(value: float | None) -> str:
    return "?" if value is None else "none" if value == math.inf else f"{value:g}"
