"""The version of Kueue's API (Kueue 0.19; v1beta1 is removed in 0.20)."""

from typing import Final

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
API_PATH: Final = f"/apis/{API_VERSION}"
CONFIGURATION: Final = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
"""Kueue's own configuration, without any setting."""
ASLEEP: Final = "ebbtide.dev/asleep"
"""Annotation of a ClusterQueue that is held while its stack sleeps."""
