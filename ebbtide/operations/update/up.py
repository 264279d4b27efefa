"""Update a stack: run its program, and replace pools whose change the cloud rejects without ending work.

A pool is replaced in steps: its replacement is created beside it, its work finishes or moves, the state is
renamed, the drained pool is deleted. Every step follows from the state alone, so that an interrupted update
continues.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console

from ebbtide.analysis.preview.stack_files import StackFiles, record_stack
from ebbtide.analysis.recording.assumption_tables import Question, is_assumed
from ebbtide.analysis.recording.record import ASSUMPTIONS
from ebbtide.analysis.recording.recording import STACK_TYPE, Recording, urn_name
from ebbtide.analysis.review.baseline import Baseline, baseline_of
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import parts, text
from ebbtide.declaration.project import yaml_file
from ebbtide.declaration.project.configuration import NAMESPACE, REPLACEMENTS, SUFFIX
from ebbtide.operations import access, inspection
from ebbtide.operations.engine import state
from ebbtide.operations.engine.events import WORDS, Step, narration
from ebbtide.operations.engine.failures import OperationError, conflicts, explanation, unlocking
from ebbtide.operations.engine.interrupts import deferred_interrupts
from ebbtide.operations.engine.stack import Stack
from ebbtide.operations.engine.state import record, with_record
from ebbtide.operations.leftovers import users
from ebbtide.operations.status import never_admitted
from ebbtide.operations.status_report import never_message
from ebbtide.operations.update import pool_replacement
from ebbtide.operations.update.plan import NOTHING, Done, Plan, done_since
from ebbtide.operations.update.pool_replacement import StatePool
from ebbtide.operations.work import drain_and_report, take_snapshot, work
from ebbtide.placement import Profile, ProfileError
from ebbtide.placement.profile_sources import OUTPUT
from ebbtide.text import several
from ebbtide.values import clock
from ebbtide.values.given_command import given_command

_KUBERNETES = "kubernetes:"
_FIELD_MANAGER = "pulumi-kubernetes"
"""Field manager of what the Kubernetes provider creates, or its prefix before 4.29 (pulumi-kubernetes,
pkg/await/await.go, `Creation`)."""
_INTERRUPTED = "The creation was interrupted."
_RECORD = "ebbtidePendingInputs"
"""Record of the inputs of adopted resources, by URN."""
_QUIET: Final = frozenset({"same", "read", "read-replacement", "replace"})
_OWN: Final = ("ebbtide:", "pulumi:")
"""Packages of resources that are only in the engine."""


def resolve_pending(stack: Stack, log: Callable[[str], object]) -> list[str]:
    """Resolve the creations that a killed engine has started and not recorded.

    The engine keeps them as pending operations and creates the resources again, which fails if they exist in
    the cloud. They are added to the state with the ids that follow from their inputs, marked by an error, and
    a refresh queries the cloud, again until it answers (`pulumi refresh --import-pending-creates` of 3.259
    leaves them pending). Then they get their inputs back: without earlier outputs, a refresh adds all of the
    cloud's defaults to the inputs, and the next update would replace an AKS cluster for it. Resources whose
    id does not follow from their inputs are created again, and so are patches of Kubernetes objects. A
    Kubernetes object that the provider did not create is not the stack's: it is removed from the state again,
    and its creation fails.

    Args:
        log: called with each of them.

    Returns:
        The errors; empty if the state matches the cloud. Otherwise the next call queries the cloud again.

    Raises:
        OperationError: another update of the stack is in progress.
    """
    document = stack.exported()
    deployment: dict[str, Any] = document["deployment"]
    sent: dict[str, Any] = dict(record(deployment, _RECORD) or {})
    resources: list[Mapping[str, Any]] = list(deployment.get("resources") or [])
    if deployment.get("pending_operations"):
        for resource in _creations(deployment):
            if (identity := _id_of(resource, deployment)) is not None:
                resources.append({**resource, "id": identity, "outputs": {}, "initErrors": [_INTERRUPTED]})
                sent[resource["urn"]] = resource.get("inputs") or {}
            else:
                log(f"An earlier update was interrupted while it created {urn_name(resource['urn'])}.")
        given_command().happens("the state has what an interrupted update began to create")
        deployment = {**deployment, "pending_operations": [], "resources": resources}
        stack.replace_state({**document, "deployment": with_record(deployment, _RECORD, sent or None)})
    adopted = [str(item["urn"]) for item in resources if item.get("initErrors") == [_INTERRUPTED]]
    if adopted and (errors := stack.refresh(adopted)):
        return errors
    if not (adopted or sent):
        return []
    document = stack.exported()
    deployment = document["deployment"]
    existing: dict[str, Mapping[str, Any]] = {
        item["urn"]: item
        for item in deployment["resources"]
        if item["urn"] not in sent or not _is_foreign(item)
    }
    restored = [{**item, "inputs": sent[urn]} if urn in sent else item for urn, item in existing.items()]
    deployment = with_record({**deployment, "resources": restored}, _RECORD, None)
    stack.replace_state({**document, "deployment": deployment})
    for urn in dict.fromkeys((*adopted, *sent)):
        if urn in existing:
            log(
                f"An earlier update was interrupted while it created {urn_name(urn)}; it exists in the cloud."
            )
        else:
            log(f"An earlier update was interrupted before it created {urn_name(urn)}.")
    return []


def _creations(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the resources that were being created; those that were being replaced are in the state."""
    present = {item["urn"] for item in deployment.get("resources") or ()}
    return [
        operation["resource"]
        for operation in deployment["pending_operations"]
        if operation.get("type") == "creating" and operation["resource"]["urn"] not in present
    ]


def _is_foreign(resource: Mapping[str, Any]) -> bool:
    """Return whether a Kubernetes object was created by another client than the provider."""
    managers = (text(fields, "manager") for fields in parts(resource, "outputs", "metadata", "managedFields"))
    return str(resource["type"]).startswith(_KUBERNETES) and not any(
        manager.startswith(_FIELD_MANAGER) for manager in managers
    )


def _id_of(resource: Mapping[str, Any], deployment: Mapping[str, Any]) -> str | None:
    """Return the id that a resource would have in the cloud; None if it does not follow from the inputs."""
    if not resource.get("custom") or str(resource["type"]).startswith("pulumi:"):
        return None
    if str(resource["type"]).startswith(_KUBERNETES):
        is_patch = str(resource["type"]).endswith("Patch")
        named = (text(resource, "inputs", "metadata", key) for key in ("namespace", "name"))
        return None if is_patch else "/".join(filter(None, named)) or None
    provider = str(resource.get("provider") or "").rpartition("::")[0]
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    inputs: dict[str, Any] = resource.get("inputs") or {}
    none: dict[str, Any] = {}
    settings: dict[str, Any] = next((item["inputs"] for item in resources if item["urn"] == provider), none)
    question = Question(
        token=resource["type"], inputs=inputs, provider=settings, name=urn_name(resource["urn"])
    )
    identity = ASSUMPTIONS.answer(question).id
    return None if is_assumed(identity) else identity


@dataclass(frozen=True, slots=True)
class UpOutcome:
    """Result of an update.

    Attributes:
        errors: errors of the engine; empty if the stack matches its declaration.
        interrupted: True if Ctrl-C ended it.
    """

    errors: tuple[str, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """An update of a stack.

    Attributes:
        files: the project's files for it.
        drain_timeout: time for work on replaced pools to finish; None for each pool's own.
        verbose: True to print the engine's errors in full.
        made: number of completed operations of the engine, by word, such as `created`.
    """

    stack: Stack
    files: StackFiles
    console: Console
    drain_timeout: timedelta | None = None
    verbose: bool = False
    made: Counter[str] = field(default_factory=Counter[str])

    def log(self, line: str) -> None:
        """Print a line."""
        self.console.print(line, markup=False, soft_wrap=True)

    def begin(self) -> tuple[dict[str, Any], Done]:
        """Return `Stack.exported`, and the changes of an update that was interrupted.

        An update that still runs has changed the state in the same way: its end is awaited.

        Raises:
            OperationError: another user or machine updates the stack; nothing was changed.
        """
        document = self.stack.exported()
        done = done_since(document["deployment"], self.stack.completed())
        if done == NOTHING and not document["deployment"].get("pending_operations"):
            return document, done
        # Without an own change, the engine waits for the lock only in a refresh: of the stack's own resource.
        roots = [item["urn"] for item in document["deployment"]["resources"] if item["type"] == STACK_TYPE]
        unlocking(lambda: self.stack.refresh(roots), self.stack.unlock, self.log)
        document = self.stack.exported()
        return document, done_since(document["deployment"], self.stack.completed())

    def baseline(self, document: Mapping[str, Any]) -> Baseline:
        """Return the deployed stack, to compare the program with.

        Args:
            document: its state, as from `Stack.exported`.
        """
        return baseline_of(document, project=self.files.project, stack=self.files.stack)

    def recorded(self, before: Baseline) -> Recording:
        """Record the program with its hooks called as in an update of the deployed stack."""
        return record_stack(self.files, before.updates, deployed=before.state)

    def losses(self, plan: Plan) -> list[str]:
        """Return lines about the data that the update deletes, with its contents; none if it is refused."""
        return [] if plan.is_refused else list(inspection.stored_lines(plan.deleted))

    def evicted(self, plan: Plan, deployment: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the question for a plan with the number of evicted workloads, and a line for each of them.

        Args:
            deployment: the `deployment` of the stack's state.
        """
        if plan.is_refused or not plan.evicted:
            return plan.question, []
        consequence = f"the work on {', '.join(sorted(plan.evicted))} is unknown"
        try:
            api, profile = access.connected(self.stack.outputs(), consequence)
            with access.reaching(consequence):
                found = work(take_snapshot(api), profile, state.read(deployment))
        except OperationError as error:
            return plan.question, [str(error)]
        own = [item for item in found if plan.evicted.intersection(item.pools)]
        if not own:
            return plan.question, []
        lines = inspection.running_lines(own, clock.now(), "The update ends the pods of work")
        return f"{plan.question[:-1]}, and evict {several(len(own), 'piece')} of work?", list(lines)

    def unplaceable(self, recording: Recording) -> list[str]:
        """Return a message for each waiting workload that could never run after the update; none if the stack
        has no cluster yet, or the cluster does not answer.
        """
        exported = recording.outputs.get(OUTPUT)
        if not isinstance(exported, str):
            return []
        try:
            waiting = never_admitted(self.stack.outputs(), Profile.load(exported))
        except (OperationError, ProfileError):
            return []
        return [never_message(queue.name, item) for queue, item in waiting]

    def run(self, changed: Collection[tuple[str, str]] = ()) -> UpOutcome:
        """Update the stack until it matches its declaration.

        Args:
            changed: type and name of each resource to change, as from `Plan`, for the progress.

        Raises:
            OperationError: this step changed nothing; earlier steps are kept.
            ApiError: the cluster of a replaced pool does not answer.
        """
        if errors := self.resolved():
            return UpOutcome(tuple(errors))
        while True:
            document = self.stack.exported()
            pools = pool_replacement.pools_of(document["deployment"])
            if drained := [pool for name, pool in pools.items() if name.endswith(pool_replacement.OLD)]:
                names = ", ".join(pool.cloud_name for pool in drained)
                self.log(f"The drained pool {names} is deleted.")
                if outcome := self.run_engine(lambda watch: self.stack.remove(_urns(drained), watch)):
                    return outcome
                continue
            recording = self.recorded(self.baseline(document))
            self._drain_removed_queues(document, recording)
            replaced = set(pool_replacement.refused(recording)) & pools.keys()
            following = {name.removesuffix(SUFFIX) for name in pools if name.endswith(SUFFIX)} & pools.keys()
            if not replaced | following:
                if outcome := self.run_engine(self.stack.up, changed):
                    return outcome
                given_command().finished(
                    f"stack {self.stack.name} matches its declaration", of=("up", "extend")
                )
                return UpOutcome()
            if outcome := self._replace(document, recording, replaced, following):
                return outcome

    def resolved(self) -> list[str]:
        """Resolve pending creations, and return the explained errors of `resolve_pending`."""
        errors = unlocking(lambda: resolve_pending(self.stack, self.log), self.stack.unlock, self.log)
        if errors:
            self._explain(errors)
        return errors

    def _drain_removed_queues(self, document: Mapping[str, Any], recording: Recording) -> None:
        """Drain the queues that the update deletes: the engine would wait in vain for those in use."""
        declared = {
            text(item.inputs, "metadata", "name") for item in recording if item.type.endswith(":ClusterQueue")
        }
        removed = state.read(document["deployment"]).queues - declared
        if removed:
            api, _ = access.connected(self.stack.outputs(), "the removed queues cannot be drained")
            drain_and_report(api, removed, self.log)

    def _replace(
        self, document: dict[str, Any], recording: Recording, replaced: set[str], following: set[str]
    ) -> UpOutcome | None:
        """Take the next step of replacements; return None if it is done.

        If the pool itself is as declared again, it replaces its replacement. If neither is, the replacement
        takes the pool's name first, and is then replaced itself.
        """
        deployment = document["deployment"]
        pools = pool_replacement.pools_of(deployment)
        undone, stale = following - replaced, self._stale(document, following)
        absent = [pools[name] for name in replaced if pools[name].resource is None]
        failed = [pools[f"{name}{SUFFIX}"] for name in undone | stale]
        if unused := [*absent, *(pool for pool in failed if not pool.is_ready)]:
            return self.run_engine(lambda watch: self.stack.remove(_urns(unused), watch))
        if undone & stale:
            self._rename(document, _merged(pool_replacement.swapped, undone & stale))
            return None
        api, _ = access.connected(self.stack.outputs(), "no pool can be replaced")
        if undone:
            replacements = [pools[f"{name}{SUFFIX}"] for name in undone]
            return self._drain(api, replacements, recording, _merged(pool_replacement.withdrawn, undone))
        if not stale and (outcome := self._declare_beside(api, pools, recording, replaced)):
            return outcome
        moving = sorted(stale or replaced)
        return self._drain(
            api, [pools[name] for name in moving], recording, _merged(pool_replacement.retired, moving)
        )

    def _stale(self, document: dict[str, Any], following: set[str]) -> set[str]:
        """Return the pools whose replacement is not as declared."""
        if not following:
            return set()
        deployment = pool_replacement.renamed(
            document["deployment"], _merged(pool_replacement.swapped, following)
        )
        before = self.baseline({**document, "deployment": deployment})
        return set(pool_replacement.refused(self.recorded(before))) & following

    def _declare_beside(
        self, api: Api, pools: Mapping[str, StatePool], recording: Recording, replaced: set[str]
    ) -> UpOutcome | None:
        """Create the replacements, and stop the autoscalers of the pools that they replace."""
        taken = {pool.cloud_name for pool in pools.values()}
        overlay: dict[str, dict[str, Any]] = {}
        for name in sorted(replaced):
            pool, replacement = pools[name], pools.get(f"{name}{SUFFIX}")
            drained = pool.drained(pool_replacement.TIMEOUT)
            overlay[pool.name] = {
                "name": replacement.cloud_name
                if replacement and replacement.resource
                else pool_replacement.replacement_name(recording, name, taken),
                "nodes": len(pool_replacement.nodes(api, drained)) if pool.count is None else pool.count,
                "inputs": pool.component["inputs"],
            }
        self.log(
            "The new pools are created beside the existing ones: "
            + ", ".join(f"{item['name']} for {name}" for name, item in overlay.items())
            + "."
        )
        with configured(self.files.config_file, f"{NAMESPACE}:{REPLACEMENTS}", overlay) as file:
            return self.run_engine(lambda watch: self.stack.up(watch, file))

    def _drain(
        self, api: Api, pools: list[StatePool], recording: Recording, names: Mapping[str, str]
    ) -> None:
        """Drain pools, and rename them and their replacements."""
        drained = [
            pool.drained(pool_replacement.timeout(recording, pool.resource_name, self.drain_timeout))
            for pool in pools
        ]
        last: list[str] = []

        def watch(line: str) -> None:
            if self.console.is_terminal:
                status.update(line)  # pyright: ignore[reportOptionalMemberAccess] - of a terminal
            elif line not in last:
                self.log(line)
                self.console.file.flush()
                last[:] = [line]

        with self.console.status("") if self.console.is_terminal else nullcontext() as status:
            given_command().happens(f"pool {', '.join(pool.cloud_name for pool in pools)} is being drained")
            pool_replacement.drain(api, drained, watch)
        self._rename(self.stack.exported(), names)

    def _rename(self, document: dict[str, Any], names: Mapping[str, str]) -> None:
        deployment = pool_replacement.renamed(document["deployment"], names)
        self.stack.replace_state({**document, "deployment": deployment})

    def run_engine(
        self,
        run: Callable[[Callable[[Step], None]], list[str]],
        changed: Collection[tuple[str, str]] = (),
    ) -> UpOutcome | None:
        """Run the engine; return None if it succeeds."""
        counted = {item for item in changed if not item[0].startswith(_OWN)}
        begun: dict[str, Mapping[str, Any]] = {}
        with (
            narration(
                self.console,
                len(counted) or None,
                lambda step: not counted or (step.type, step.name) in counted,
            ) as show,
            deferred_interrupts(
                lambda: self.log("The engine finishes its current operations; this takes a while.")
            ) as interrupts,
        ):

            def watch(step: Step) -> None:
                if step.operation not in _QUIET and not step.type.startswith(_OWN):
                    show(step)
                    self.made[WORDS.get(step.operation, step.operation)] += step.done
                    begun[step.urn] = step.inputs

            given_command().happens(f"the update of stack {self.stack.name} has begun")
            errors = unlocking(lambda: run(watch), self.stack.unlock, self.log)
        if errors or interrupts.received:
            self._explain(errors, begun)
            return UpOutcome(tuple(errors), interrupted=interrupts.received)
        return None

    def _explain(self, errors: Iterable[str], begun: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        errors = tuple(errors)
        for line in explanation(self.stack.name, errors, verbose=self.verbose):
            self.log(line)
        for line in users.advice(self.stack.outputs, errors):
            self.log(line)
        for line in conflicts(self.stack.exported()["deployment"], begun) if errors and begun else ():
            self.log(f"  {line}")
        given = given_command()
        again = given.again() if given.name else given.on_stack("up", self.stack.name)
        self.log(f"Not everything matches the declaration. Continue with: {again}")


def _merged(rename: Callable[[str], Mapping[str, str]], names: Iterable[str]) -> dict[str, str]:
    """Return the renames of several pools together."""
    return {old: new for name in names for old, new in rename(name).items()}


def _urns(pools: Iterable[StatePool]) -> list[str]:
    return [urn for pool in pools for urn in pool.urns]


@contextmanager
def configured(config_file: Path, key: str, value: object) -> Generator[Path]:
    """Write a stack's file with a setting of one run, as JSON, which is valid YAML."""
    settings: Any = yaml_file.read(config_file).value or {}
    config: dict[str, Any] = {**(settings.get("config") or {}), key: value}
    with TemporaryDirectory(prefix="ebbtide-") as directory:
        file = Path(directory, config_file.name)
        file.write_text(json.dumps({**settings, "config": config}), encoding="utf-8")
        yield file
