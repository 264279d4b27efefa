"""`python -m kueue_replay`: a request as JSON on standard input, the result on standard output."""

import json
import sys
from collections.abc import Mapping
from typing import Any, cast

from ebbtide.errors import EbbtideError
from kueue_replay.replays import RequestError, replay


def main() -> int:
    """Replay a request; status 2 with every fault on standard error if it is invalid."""
    try:
        request = json.load(sys.stdin)
    except ValueError as error:
        print(f"The request is not JSON: {error}.", file=sys.stderr)  # noqa: T201
        return 2
    try:
        document = replay(_object(request)).document()
    except EbbtideError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    sys.stdout.write(document.model_dump_json(indent=2) + "\n")
    return 0


def _object(request: Any) -> Mapping[str, Any]:
    if not isinstance(request, dict):
        raise RequestError("The request is not an object.")
    return cast("Mapping[str, Any]", request)


if __name__ == "__main__":
    sys.exit(main())
