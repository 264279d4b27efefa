"""Secrets of Jobs and sweeps: references in the manifest, and no value anywhere."""

import json
import re
from typing import Any

import pytest

from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.jobs import job
from ebbtide.work.secrets import check_text
from ebbtide.work.sweeps import sweep
from tests.manifests import assert_valid
from tests.unit.work.clusters import DEV, problems_of

_FIELDS: Any = {"name": "train", "image": "busybox", "pool": "cpu-spot"}
_SECRETS: Any = {
    "secret_env": {"WANDB_API_KEY": "tracker/api-key"},
    "secret_volumes": {"tracker": "/secrets/tracker", "team.registry": "/secrets/registry"},
}


def _problems(**fields: Any) -> tuple[str, ...]:
    return problems_of(lambda: job(DEV, **_FIELDS | fields))


@pytest.mark.parametrize(
    "made", [job(DEV, **_FIELDS, **_SECRETS), sweep(DEV, {"a": [1]}, **_FIELDS, **_SECRETS)]
)
def test_a_secret_is_a_reference(made: dict[str, Any]) -> None:
    """A key is a variable, and a whole Secret is a read-only volume."""
    assert_valid(made, "1.35")
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert [item for item in container["env"] if "valueFrom" in item] == [
        {
            "name": "WANDB_API_KEY",
            "valueFrom": {"secretKeyRef": {"name": "tracker", "key": "api-key"}},
        }
    ]
    assert pod["volumes"] == [
        {"name": "secret-0", "secret": {"secretName": "tracker"}},
        {"name": "secret-1", "secret": {"secretName": "team.registry"}},
    ]
    assert container["volumeMounts"] == [
        {"name": "secret-0", "mountPath": "/secrets/tracker", "readOnly": True},
        {"name": "secret-1", "mountPath": "/secrets/registry", "readOnly": True},
    ]


def test_beside_a_volume_for_checkpoints() -> None:
    """All of them are mounted."""
    pod = job(DEV, **_FIELDS, **_SECRETS, volume="shared")["spec"]["template"]["spec"]
    assert [item["name"] for item in pod["volumes"]] == ["checkpoints", "secret-0", "secret-1"]
    assert [item["mountPath"] for item in pod["containers"][0]["volumeMounts"]] == [
        "/checkpoints",
        "/secrets/tracker",
        "/secrets/registry",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", "5f0c"),
        ("wandb_apikey", "5f0c"),
        ("HF_TOKEN", "hf_0123456789abcdef"),
        ("DB_PASSWORD", "5f0c"),
        ("PASSWORD", "5f0c"),
        ("AWS_SECRET_ACCESS_KEY", "5f0c"),
        ("CLIENT_SECRET", "5f0c"),
    ],
)
def test_a_value_that_looks_secret_is_refused(name: str, value: str) -> None:
    """With what to write instead, and without the value."""
    (problem,) = _problems(env={name: value})
    assert problem.startswith(f"env has {name}, which looks like a secret")
    assert problem.endswith(f"write secret_env (--secret-env) {name}=NAME/KEY.")
    assert value not in problem


_A, _B = "a" * 40, "B" * 40


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (f"pip install git+https://ghp_{_A}@github.com/acme/lib", "a token of GitHub"),
        (f"huggingface-cli login --token hf_{_A}", "a token of Hugging Face"),
        (f"curl -H 'Authorization: Bearer eyJ{_A}.eyJ{_A}.x'", "a JSON Web Token"),
        ("pip install -i https://ada:s3cret@pypi.acme.example/simple", "a password in a URL"),
        (f"echo {'-' * 5}BEGIN RSA PRIVATE KEY{'-' * 5}", "a private key"),
        (f"echo {'-' * 5}BEGIN PGP PRIVATE KEY BLOCK{'-' * 5}", "a private key"),
        (f"docker login --password dckr_oat_{_A}", "a token of Docker Hub"),
        (f"az login --password aaa8Q~{_A[:31]}", "a secret of an application in Entra ID"),
        ("export WANDB_API_KEY=5f0c && wandb login", "a value of WANDB_API_KEY"),
        (f"export AWS_ACCESS_KEY_ID=AKIA{_B[:16]}", "an access key of AWS"),
    ],
)
def test_a_secret_in_commands(text: str, held: str) -> None:
    """Commands of a shell with a token or a password are refused, without repeating it."""
    problems = Problems()
    check_text("setup", text, problems)
    (problem,) = problems.all
    assert problem.startswith(f"setup has {held}, which everyone with access to the Job could read.")
    assert not {_A, "s3cret", "5f0c"} & set(re.split(r"\W", problem))


@pytest.mark.parametrize(
    "text",
    [
        "pip install -r requirements.txt",
        "pip install git+https://$GITHUB_TOKEN@github.com/acme/lib",
        "pip install -i https://ada:$PASSWORD@pypi.acme.example/simple",
        "export HF_TOKEN=$(cat /secrets/hf/token)",
        'export API_KEY="$WANDB_API_KEY"',
        "python train.py --pad-token '<pad>' --max_tokens=4096 --tokenizer=sk-learn",
        "git clone git@github.com:acme/lib.git",
        f"pip install pypi-{'a-' * 30}mirror",
        "curl http://localhost:8080/a@b",
    ],
)
def test_commands_without_a_secret(text: str) -> None:
    """References to variables and files, and names that are similar, are not secrets."""
    problems = Problems()
    check_text("setup", text, problems)
    assert problems.all == ()


@pytest.mark.parametrize("field", ["command", "args"])
def test_a_secret_in_a_command(field: str) -> None:
    """The words of a command are checked as well, and values of variables of any name."""
    (problem,) = _problems(**{field: ["python", "train.py", f"--key=hf_{_A}"]})
    assert problem.startswith(f"{field} has a token of Hugging Face")
    assert _problems(env={"KEY": f"hf_{_A}"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAD_TOKEN", "<pad>"),
        ("MAX_TOKENS", "4096000000000000"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("DB_PASSWORD_FILE", "/secrets/db/password"),
        ("API_KEY", "$(WANDB_API_KEY)"),
        ("PASSWORD", ""),
        ("PRIMARY_KEY", "id"),
    ],
)
def test_what_is_no_secret_is_let_be(name: str, value: str) -> None:
    """Names of tokens in language models, paths, references to another variable."""
    assert name in json.dumps(job(DEV, **_FIELDS, env={name: value}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"secret_env": {"A": "tracker"}}, "secret_env has A without a reference to a Secret's key"),
        ({"secret_env": {"A": "tracker/"}}, "write SECRET/KEY, such as A=tracker/api-key, never the value."),
        ({"secret_env": {"A": "Tracker/key"}}, "secret_env has A without a reference"),
        ({"secret_env": {"A": "a/b/c"}}, "secret_env has A without a reference"),
        ({"secret_env": {"A B": "a/b"}}, "secret_env has 'A B', which is not a valid name of a variable."),
        ({"secret_env": {"A": "a/b"}, "env": {"A": "1"}}, "env and secret_env both have A: write it once."),
        ({"secret_volumes": {"_": "/a"}}, "secret_volumes has '_', which is not a valid name of a Secret."),
        ({"secret_volumes": {"a": "b"}}, "secret_volumes has a at 'b'; write an absolute path"),
        ({"secret_volumes": {"a": "/x", "b": "/x"}}, "secret_volumes has /x twice"),
        ({"secret_volumes": {"a": "/x"}, "volume": "shared", "mount_path": "/x"}, "both have /x"),
    ],
)
def test_invalid_arguments(fields: dict[str, Any], message: str) -> None:
    """One error, that names what to write."""
    (problem,) = _problems(**fields)
    assert message in problem


def test_a_sweeps_own_variables_are_its_own() -> None:
    """From a Secret neither."""
    with pytest.raises(WorkloadError, match="secret_env has EBBTIDE_SWEEP, which a sweep sets"):
        sweep(DEV, {"a": [1]}, **_FIELDS, secret_env={"EBBTIDE_SWEEP": "a/b"})
