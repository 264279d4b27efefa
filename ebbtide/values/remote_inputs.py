"""Fingerprint of the inputs of Helm charts and kustomizations.

Their provider creates their objects, and the engine keeps no inputs of such a component (pulumi 3.259). The
component around them has the fingerprint as an output, so that a plan against a state knows if they change.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

OUTPUT: Final = "remoteInputs"


def remote_inputs(*inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the output of the component around charts and kustomizations with these inputs."""
    text = json.dumps(inputs, sort_keys=True)
    return {OUTPUT: hashlib.sha256(text.encode()).hexdigest()}
