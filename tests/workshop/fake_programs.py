"""Fakes of the programs that the workflows call, which refuse what the real ones refuse.

A runner writes this file under each program's name. It records each call in `$FAKE_HOME/calls`.

Sources (2026-11): `--help` of gh 2.83, az 2.80 and pulumi 3.259; docs.github.com, REST API, issue comments.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn, cast

_LONGEST_COMMENT = 65_536


def _fail(message: str, status: int = 1) -> NoReturn:
    sys.stderr.write(f"{Path(sys.argv[0]).name}: {message}\n")
    sys.exit(status)


def _home() -> Path:
    return Path(os.environ["FAKE_HOME"])


def _parser(*options: str) -> argparse.ArgumentParser:
    """Return a parser of flags, and of options that end in `=`."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in options:
        parser.add_argument(option.removesuffix("="), action="store" if option[-1] == "=" else "store_true")
    return parser


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _login() -> str:
    """Return the identity of the job: the Google Cloud account, or the Azure client."""
    google = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    azure = os.environ.get("AZURE_CLIENT_ID", "") if os.environ.get("AZURE_FEDERATED_TOKEN_FILE") else ""
    return google or azure


def gh(words: list[str]) -> None:
    """Download an artifact, or call the REST API for comments and issues."""
    if not os.environ.get("GH_TOKEN") or not os.environ.get("GH_REPO"):
        _fail("set the GH_TOKEN environment variable, and GH_REPO outside of a clone")
    if words[:2] == ["run", "download"]:
        given = _parser("--name=").parse_known_args(words[2:])[0]
        artifact = _home() / f"artifact-{given.name}"
        if not artifact.exists():
            _fail("no artifact matches any of the names or patterns provided")
        if artifact.is_dir():
            shutil.copytree(artifact, ".", dirs_exist_ok=True)
        else:
            Path(f"{given.name.partition('-')[0]}.md").write_bytes(artifact.read_bytes())
        return
    if words[:1] == ["api"] and "graphql" not in words and not any("/git/refs" in word for word in words):
        _comment(words)
    else:
        _pull_request(words)


def _comment(words: list[str]) -> None:
    """List, write or close issues and comments."""
    parser = _parser("--paginate", "--silent", "--jq=", "--method=", "--field=", "--raw-field=")
    parser.add_argument("path")
    given = parser.parse_args(words[1:])
    path = given.path.partition("?")[0]
    file = _home() / ("comments.json" if "/comments" in path else "issues.json")
    stored: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    if given.jq:
        _print("\n".join(_filtered(given.jq, [item for item in stored if item.get("state") != "closed"])))
        return
    values = {name: value for name, _, value in (str(given.raw_field or "").partition("="),) if name}
    name, _, value = str(given.field or "").partition("=")
    if name:
        values[name] = Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value
    if (
        not values
        or values.keys() - {"body", "title", "state"}
        or len(values.get("body", "")) > _LONGEST_COMMENT
    ):
        _fail("Validation Failed: body is too long (HTTP 422)")
    number = path.rpartition("/")[2]
    if given.method == "PATCH" and number.isdecimal():
        stored[int(number) - 1].update(values)
    elif given.method == "POST" and number in ("comments", "issues"):
        count, user = len(stored) + 1, {"login": "github-actions[bot]"}
        stored.append({"id": count, "number": count, "user": user, **values})
    else:
        _fail("Not Found (HTTP 404)")
    file.write_text(json.dumps(stored))


def _pull_request(words: list[str]) -> None:
    """Move a branch, commit files on it, or describe its pull request, in `branch.json` and `pull.md`."""
    branch, pull = _home() / "branch.json", _home() / "pull.md"
    match words:
        case ["api", "--method", "PATCH", path, *_] if path.endswith("/heads/prices") and not branch.exists():
            _fail("Reference does not exist (HTTP 422)")
        case ["api", "--method", "PATCH" | "POST", *_]:
            branch.write_text("{}")
        case ["api", "graphql", "--input", "-", "--silent"] if branch.exists():
            commit = json.loads(sys.stdin.read())["variables"]["commit"]
            branch.write_text(json.dumps(commit))
        case ["pr", "edit", "prices", "--body-file", file] if pull.exists():
            pull.write_text(Path(file).read_text(encoding="utf-8"))
        case ["pr", "create", "--head", "prices", "--title", _, "--body-file", file] if not pull.exists():
            pull.write_text(Path(file).read_text(encoding="utf-8"))
        case _:
            _fail("no pull requests found, or unknown command")


def _filtered(program: str, document: Any) -> list[str]:
    import jq as library  # noqa: PLC0415 - of the tests' environment

    results: list[Any] = cast("Any", library).compile(program).input_value(document).all()
    return [item if isinstance(item, str) else json.dumps(item, separators=(",", ":")) for item in results]


def jq(words: list[str]) -> None:
    """Filter a file, or standard input."""
    parser = _parser("--compact-output", "--exit-status", "--null-input", "--raw-input", "--slurp")
    parser.add_argument("program")
    parser.add_argument("file", nargs="?")
    given = parser.parse_args(words)
    if given.null_input:
        text = "null"
    else:
        text = Path(given.file).read_text(encoding="utf-8") if given.file else sys.stdin.read()
    if given.slurp and not given.raw_input:
        text = f"[{','.join(text.splitlines())}]"
    results = _filtered(given.program, text if given.raw_input else json.loads(text))
    _print("\n".join(results))
    if given.exit_status and results[-1:] in ([], ["false"], ["null"]):
        sys.exit(1)


def pulumi(words: list[str]) -> None:
    """Select, list and remove stacks of a backend."""
    if not os.environ.get("PULUMI_BACKEND_URL") and not os.environ.get("PULUMI_ACCESS_TOKEN"):
        _fail("PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions")
    backend = _home() / "stacks"
    stacks: list[str] = backend.read_text().split() if backend.exists() else []
    match words:
        case ["stack", "ls", "--json"]:
            _print(json.dumps([{"name": name, "current": False} for name in stacks]))
        case ["stack", "select", name, "--create", "--secrets-provider", _]:
            backend.write_text(" ".join(dict.fromkeys([*stacks, name])))
        case ["stack", "output", "kubeconfig", "--show-secrets", "--stack", name] if name in stacks:
            _print("{}")
        case ["stack", "output", "placementProfile", "--stack", name] if name in stacks:
            _print("{}")
        case ["stack", "export", "--stack", name, "--file", file] if name in stacks:
            resources: dict[str, list[str]] = (
                {"resources": []} if (_home() / f"updated-{name}").exists() else {}
            )
            Path(file).write_text(json.dumps({"version": 3, "deployment": resources}))
        case ["stack", "rm", name, "--yes", "--preserve-config"] if name in stacks:
            backend.write_text(" ".join(item for item in stacks if item != name))
        case _:
            _fail(f"no stack, or unknown command {words}")


def ebbtide(words: list[str]) -> None:
    """Review, or act on a stack with an identity; the tests check the options with the real parser."""
    if words[0] == "review":
        given = _parser("--against=", "--format=", "--out=").parse_known_args(words[2:])[0]
        Path(given.out).write_text(os.environ.get("FAKE_REVIEW", f"Review of {words[1]}\n"))
        sys.exit(int("FAKE_REVIEW" in os.environ))
    if words[0] == "drift":
        shape = os.environ.get("FAKE_DRIFT", "no drift")
        text = (
            f"<!-- ebbtide drift of {words[1]} -->\n<!-- {shape} -->\n\n{os.environ.get('FAKE_TEXT', '')}\n"
        )
        Path(words[words.index("--out") + 1]).write_text(text)
        sys.exit(int("FAKE_DRIFT" in os.environ) if _login() else 2)
    if words[:2] == ["rehearse", "--compare"]:
        Path(words[4]).write_text(f"{len(list(Path(words[2]).iterdir()))} recordings compared\n")
        sys.exit(1)
    if words[0] == "job":
        if not Path(os.environ["KUBECONFIG"]).is_file() or not Path(os.environ["EBBTIDE_PROFILE"]).is_file():
            _fail("There is no kubeconfig.")
        return
    if not _login():
        _fail("There are no valid credentials.")
    if "--record" in words:
        recording = Path(words[words.index("--record") + 1])
        recording.mkdir(exist_ok=True)
        text = json.dumps({file.name: file.read_text() for file in Path().glob("*.yaml")}) + "\n"
        (recording / f"{len(list(recording.iterdir())) + 1}-{words[0]}.jsonl").write_text(text)
    if "--only-resources" in words:
        stacks = (_home() / "stacks").read_text().split() if (_home() / "stacks").exists() else []
        expired = [{"stack": f"acme/{name}", "outcome": "expired"} for name in stacks if name[:3] == "pr-"]
        _print(json.dumps({"stacks": expired, "resources": []}))
        sys.exit(int(bool(expired)))
    if words[0] in ("up", "destroy", "wake"):
        _act(words[0], words[1])


def _act(command: str, stack: str) -> None:
    if not Path(f"Pulumi.{stack}.yaml").is_file():
        _fail(f"There is no stack {stack}.")
    if command == "up":
        (_home() / f"updated-{stack}").touch()
        _print(f"Stack {stack}: 1 to create.\ncreated: acme:web:Site a")
        sys.exit(int(os.environ.get("FAKE_UP", "0")))


def az(words: list[str]) -> None:
    """Install kubectl and kubelogin, each of a version."""
    if words[:2] != ["aks", "install-cli"]:
        _fail("Please run 'az login' to setup account.")
    names = ("client-version", "install-location", "kubelogin-version", "kubelogin-install-location")
    given = _parser(*(f"--{name}=" for name in names)).parse_args(words[2:])
    if not given.client_version or not given.kubelogin_version:
        _fail("The latest version would be installed.")


def go(words: list[str]) -> None:
    """Build a version of a module's program into `GOBIN`."""
    match words:
        case ["install", module] if re.fullmatch(r"[\w./-]+@v\d+\.\d+\.\d+", module):
            Path(os.environ["GOBIN"]).mkdir(parents=True, exist_ok=True)
        case _:
            _fail(f"unknown command {words}")


def gcloud(words: list[str]) -> None:
    """Write the configuration of federated credentials."""
    if words[:3] != ["iam", "workload-identity-pools", "create-cred-config"]:
        _fail(f"unknown command {words}")
    parser = _parser("--service-account=", "--credential-source-file=", "--output-file=")
    parser.add_argument("provider")
    given = parser.parse_args(words[3:])
    if not given.provider or not Path(given.credential_source_file).read_text().strip():
        _fail("there is no provider, or no token")
    Path(given.output_file).write_text(given.service_account)


def curl(words: list[str]) -> None:
    """Download the installer of Pulumi, or call GitLab's REST API for notes."""
    options = ("--header=", "--output=", "--request=", "--data-urlencode=")
    parser = _parser("--fail", "--silent", "--location", *options)
    parser.add_argument("url")
    given = parser.parse_args(words)
    if given.url == "https://get.pulumi.com":
        Path(given.output).write_text('test "$1" = --version -a -n "$2"\n')
        return
    if given.header != f"PRIVATE-TOKEN: {os.environ['COMMENT_TOKEN']}":
        _fail("(22) The requested URL returned error: 401")
    notes = _home() / "comments.json"
    stored: list[dict[str, Any]] = json.loads(notes.read_text()) if notes.exists() else []
    if given.request is None:
        Path(given.output).write_text(json.dumps(stored))
        return
    name, _, file = str(given.data_urlencode).partition("@")
    values = {name: Path(file).read_text(encoding="utf-8")}
    number = given.url.rpartition("/")[2]
    if given.request == "POST" and number == "notes":
        stored.append({"id": len(stored) + 1, **values})
    elif given.request == "PUT" and number.isdecimal():
        stored[int(number) - 1] |= values
    else:
        _fail("(22) The requested URL returned error: 404")
    notes.write_text(json.dumps(stored))


def packages(words: list[str]) -> None:
    """Install packages of Debian and Alpine."""
    known = {"update", "install", "add", "--quiet", "--yes", "--no-cache", "python3-venv", "curl", "jq"}
    if set(words) - known:
        _fail(f"unknown package or option in {words}")


def git(words: list[str]) -> None:
    """Fetch a branch under another name."""
    match words:
        case ["fetch", "--quiet", "origin", refs] if refs.startswith("+refs/heads/") and "/:" not in refs:
            pass
        case _:
            _fail(f"couldn't find remote ref, or unknown command {words}")


def make(words: list[str]) -> None:
    """Make targets of the repository."""
    text = Path("Makefile").read_text(encoding="utf-8") if Path("Makefile").exists() else ""
    if missing := [word for word in words if f"\n{word}:" not in text]:
        _fail(f"*** No rule to make target '{missing[0]}'.  Stop.")


def python(words: list[str]) -> None:
    """Create a virtual environment, or install requirements into it."""
    match words:
        case ["-m", "venv", directory]:
            program = Path(directory, "bin", "python")
            program.parent.mkdir(parents=True)
            program.write_bytes(Path(sys.argv[0]).read_bytes())
            program.chmod(0o755)
        case ["-m", "pip", "install", *_, "--requirement", file] if Path(file).is_file():
            pass
        case ["-m", "pip", "install", "--quiet", "azure-cli"]:
            pass
        case _:
            _fail(f"cannot {words}")


if __name__ == "__main__":
    called = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with (_home() / "calls").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"argv": called, "login": _login()}) + "\n")
    functions = {"apk": packages, "apt-get": packages, "python3": python}
    functions.get(called[0], globals().get(called[0]))(called[1:])  # pyright: ignore[reportOptionalCall]
