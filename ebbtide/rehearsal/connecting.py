"""To a cluster with a kubeconfig as it is given to people."""

import os
from collections.abc import Mapping
from typing import Any

import kubernetes as untyped  # pyright: ignore[reportMissingTypeStubs] - it has none

from ebbtide.rehearsal.control_plane import Api
from ebbtide.rehearsal.failures import RehearsalError


def connect(kubeconfig: Mapping[str, Any]) -> Api:
    """The cluster of a kubeconfig, as whoever its credential program speaks for.

    Raises:
        RehearsalError: the kubeconfig cannot be used.
    """
    kubernetes: Any = untyped
    settings = kubernetes.client.Configuration()
    try:
        kubernetes.config.load_kube_config_from_dict(dict(kubeconfig), client_configuration=settings)
    except kubernetes.config.ConfigException as error:
        raise RehearsalError(f"The stack's kubeconfig cannot be used: {error}") from error
    authority = settings.ssl_ca_cert or os.environ["SSL_CERT_FILE"]
    return Api(settings.host, authority, settings.api_key["authorization"].removeprefix("Bearer "))
