"""Creation of a Job in several requests: their order, what a failure leaves, and what removes it."""

from collections.abc import Callable
from typing import Any

import pytest

from ebbtide.clients.kubernetes import ApiError
from ebbtide.text import command_line
from ebbtide.values.paths import Object
from ebbtide.work import submission
from ebbtide.work.errors import ClusterError
from ebbtide.work.kinds import NoWorkloadError
from ebbtide.work.runs.existing import cancel
from tests.unit.api_objects import ObjectsApi

_JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {}}
_CODE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train-code-1"}, "immutable": True}
_OTHER_CODE = {**_CODE, "metadata": {"name": "train-code-2"}}
_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}, "spec": {}}
_JOBS, _MAPS, _SERVICES = (
    f"/{group}/namespaces/lab/{kind}"
    for group, kind in (("apis/batch/v1", "jobs"), ("api/v1", "configmaps"), ("api/v1", "services"))
)
_LOST = ApiError(0, "The API server cannot be reached (no answer)")
_CANCEL = command_line("cancel", "train", "-n", "lab")


class _Killed(BaseException):
    """The end of the process, which cleans nothing up."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ObjectsApi:
    """An API server, and no pauses."""
    monkeypatch.setattr(submission.time, "sleep", float)
    return ObjectsApi()


def _failing(
    at: tuple[str, str], error: BaseException = _LOST, times: int = 99
) -> Callable[[str, str], None]:
    left = times

    def fail(method: str, path: str) -> None:
        nonlocal left
        if (method, path) == at and left:
            left -= 1
            raise error

    return fail


def test_the_job_comes_last_and_owns_the_others(api: ObjectsApi) -> None:
    """No pod can wait for its code; what was created before the Job is deleted with it."""
    job = submission.submit(api, _JOB, _CODE, _SERVICE)
    code, service = f"{_MAPS}/train-code-1", f"{_SERVICES}/train"
    assert api.writes == [
        ("POST", _MAPS),
        ("POST", _SERVICES),
        ("POST", _JOBS),
        ("PATCH", code),
        ("PATCH", service),
    ]
    for path in (code, service):
        metadata = api.objects[path]["metadata"]
        assert [owner["uid"] for owner in metadata["ownerReferences"]] == [job["metadata"]["uid"]]
        assert submission.CREATED_FOR not in metadata["labels"]
    api.delete(f"{_JOBS}/train")
    assert api.objects == {}


def test_dependents_are_their_users(api: ObjectsApi) -> None:
    """Dependents have the label of the Job's user, by which a policy keeps other members off them."""
    owner = {"ebbtide.dev/owner": "ada-acme.example"}
    job: Object = {**_JOB, "metadata": {"name": "train", "labels": owner}}
    submission.submit(api, job, _CODE, _SERVICE)
    for path in (f"{_MAPS}/train-code-1", f"{_SERVICES}/train"):
        assert api.objects[path]["metadata"]["labels"].items() >= owner.items()


@pytest.mark.parametrize("at", [("POST", _MAPS), ("POST", _SERVICES), ("POST", _JOBS)])
def test_a_refused_creation_leaves_nothing(api: ObjectsApi, at: tuple[str, str]) -> None:
    """Objects that were created before are deleted, and the error says nothing of them."""
    api.on_write = _failing(at, ApiError(403, "exceeded quota"))
    with pytest.raises(ClusterError, match=r"and nothing was created: exceeded quota$"):
        submission.submit(api, _JOB, _CODE, _SERVICE)
    assert api.objects == {}


def test_an_api_server_that_goes_away(api: ObjectsApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names all that may exist, and the command that deletes it, which does."""
    api.on_write = _failing(("POST", _JOBS))
    monkeypatch.setattr(api, "find", _refuse)
    with pytest.raises(ClusterError) as failed:
        submission.submit(api, _JOB, _CODE)
    assert str(failed.value).endswith(
        "from this machine. Job train and ConfigMap train-code-1 may exist in namespace lab: delete what "
        f"exists with `{_CANCEL}`."
    )
    monkeypatch.undo()
    assert cancel(api, "train", "lab") == (
        "Deleted ConfigMap train-code-1 in namespace lab, which a creation of Job train left."
    )
    assert api.objects == {}
    with pytest.raises(NoWorkloadError):
        cancel(api, "train", "lab")


def _nothing(*_: Any) -> None:
    pass


def _refuse(*_: Any, **__: Any) -> None:
    raise _LOST


def test_an_interrupt_removes_what_was_created(api: ObjectsApi) -> None:
    """Ctrl-C before the Job's answer deletes its code, and so does SIGTERM where it is handled."""
    api.on_write = _failing(("POST", _JOBS), KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match=r"^Nothing remains of it\.$"):
        submission.submit(api, _JOB, _CODE)
    api.on_write = _failing(("POST", _JOBS), SystemExit(143))
    with pytest.raises(SystemExit, match="143"):
        submission.submit(api, _JOB, _CODE)
    assert api.objects == {}


def test_a_lost_answer_is_recognized_as_ours(api: ObjectsApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated creation that answers 409 returns the object of the first one; another's is refused."""
    monkeypatch.setattr(submission, "dry_run", _nothing)
    create = api.create

    def repeated(path: str, body: Any, **query: str) -> Object:
        create(path, body, **query)
        return create(path, body, **query)

    monkeypatch.setattr(api, "create", repeated)
    job = submission.submit(api, _JOB, _CODE)
    assert job == api.objects[f"{_JOBS}/train"]
    with pytest.raises(ClusterError, match="Job train already exists in namespace lab"):
        submission.submit(api, _JOB, _OTHER_CODE)
    assert sorted(api.objects) == [f"{_MAPS}/train-code-1", f"{_JOBS}/train"]
    assert api.objects[f"{_JOBS}/train"] == job


@pytest.mark.parametrize("again", [False, True])
def test_code_that_is_deleted_during_the_creation(api: ObjectsApi, *, again: bool) -> None:
    """The Job, whose pods could never start, is deleted; another ConfigMap of the name stays as it is."""
    code = f"{_MAPS}/train-code-1"

    def forget(method: str, path: str) -> None:
        if (method, path) == ("POST", _JOBS):
            del api.objects[code]
            if again:
                api.create(_MAPS, _CODE)

    api.on_write = forget
    with pytest.raises(ClusterError, match="ConfigMap train-code-1 in namespace lab was deleted during"):
        submission.submit(api, _JOB, _CODE)
    assert list(api.objects) == ([code] if again else [])
    assert not again or "ownerReferences" not in api.objects[code]["metadata"]


def test_a_replacement(api: ObjectsApi) -> None:
    """The code of the new Job is stored before the earlier Job is deleted."""
    earlier = submission.submit(api, _JOB, _CODE, _SERVICE)
    api.writes.clear()
    job = submission.submit(api, _JOB, _OTHER_CODE, _SERVICE, earlier=earlier)
    assert api.writes[:4] == [
        ("POST", _MAPS),
        ("DELETE", f"{_JOBS}/train"),
        ("POST", _SERVICES),
        ("POST", _JOBS),
    ]
    assert api.names("configmaps") == ["train-code-2"]
    assert job["metadata"]["uid"] != earlier["metadata"]["uid"]


def test_a_replacement_keeps_the_earlier_job_until_its_code_stands(api: ObjectsApi) -> None:
    """If the code cannot be stored, the earlier Job stays."""
    earlier = submission.submit(api, _JOB, _CODE)
    api.on_write = _failing(("POST", _MAPS))
    with pytest.raises(ClusterError, match=r"this machine\.$"):
        submission.submit(api, _JOB, _OTHER_CODE, earlier=earlier)
    assert api.objects[f"{_JOBS}/train"] == earlier


def test_a_replacement_deletes_no_other_job(api: ObjectsApi) -> None:
    """Between the look-up and the deletion another's Job has got the name: it stays."""
    earlier = submission.submit(api, _JOB, _CODE)
    api.delete(f"{_JOBS}/train")
    others = submission.submit(api, _JOB, _CODE)
    with pytest.raises(ClusterError, match="Job train already exists"):
        submission.submit(api, _JOB, _OTHER_CODE, earlier=earlier)
    assert api.objects[f"{_JOBS}/train"] == others
    assert api.names("configmaps") == ["train-code-1"]


def test_a_replacement_that_is_not_answered(api: ObjectsApi) -> None:
    """Once the earlier Job is deleted, the creation is tried for two minutes; the error says that it is
    deleted."""
    earlier = submission.submit(api, _JOB, _CODE)
    api.on_write = _failing(("POST", _JOBS), times=5)
    assert submission.submit(api, _JOB, _OTHER_CODE, earlier=earlier) == api.objects[f"{_JOBS}/train"]
    api.on_write = _failing(("POST", _JOBS), ApiError(403, "exceeded quota"))
    with pytest.raises(ClusterError, match=r"quota The earlier Job train is deleted, or is being deleted\.$"):
        submission.submit(api, _JOB, _CODE, earlier=api.objects[f"{_JOBS}/train"])
    assert api.objects == {}


def test_the_next_creation_removes_what_a_killed_one_left(api: ObjectsApi) -> None:
    """Code without a Job is deleted after a quarter of an hour, and owned if there is its Job; that of a
    creation that may still work on it stays."""
    for name, created in (("old", "10:00"), ("ran", "10:01"), ("new", "10:10")):
        api.clock = f"2026-11-20T{created}:00Z"
        at = ("PATCH", f"{_MAPS}/ran-code") if name == "ran" else ("POST", _JOBS)
        api.on_write = _failing(at, _Killed())
        job, code = (
            {**item, "metadata": {"name": f"{name}{end}"}} for item, end in ((_JOB, ""), (_CODE, "-code"))
        )
        with pytest.raises(_Killed):
            submission.submit(api, job, code)
    assert api.names("configmaps") == ["old-code", "ran-code", "new-code"]
    api.on_write = lambda _method, _path: None
    api.clock = "2026-11-20T10:17:00Z"
    submission.submit(api, _JOB, _CODE)
    assert api.names("configmaps") == ["ran-code", "new-code", "train-code-1"]
    ran = api.objects[f"{_MAPS}/ran-code"]["metadata"]
    assert [owner["name"] for owner in ran["ownerReferences"]] == ["ran"]
    assert submission.CREATED_FOR not in ran["labels"]


def test_dependents_of_another_user_are_left_to_their_user(api: ObjectsApi) -> None:
    """A policy refuses to change them, and what else is left is removed nevertheless."""
    job, code = ({**item, "metadata": {"name": name}} for item, name in ((_JOB, "ran"), (_CODE, "ran-code")))
    api.on_write = _failing(("PATCH", f"{_MAPS}/ran-code"), _Killed())
    with pytest.raises(_Killed):
        submission.submit(api, job, code)
    api.create(
        _SERVICES, {**_SERVICE, "metadata": {"name": "old", "labels": {submission.CREATED_FOR: "old"}}}
    )
    api.on_write = _failing(("PATCH", f"{_MAPS}/ran-code"), ApiError(403, "belongs to another user"))
    assert submission.remove_unowned(api, "lab") == ["Service old"]
    assert api.names("configmaps") == ["ran-code"]


def test_other_code_of_the_name_stays(api: ObjectsApi) -> None:
    """Code that gets the name of unowned code between its look-up and its deletion is not deleted."""
    path, name = f"{_MAPS}/train-code-1", "train-code-1"
    unowned: Object = {**_CODE, "metadata": {"name": name, "labels": {submission.CREATED_FOR: "train"}}}
    other: Object = {**_CODE, "metadata": {"name": name, "uid": "other"}}
    api.create(_MAPS, unowned)
    api.on_write = lambda _method, _path: api.objects.update({path: other})
    submission.remove_unowned(api, "lab", name="train")
    assert api.objects == {path: other}
