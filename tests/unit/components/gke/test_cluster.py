"""The GKE cluster of another owner."""

from ebbtide.analysis.recording.values import Secret
from tests.contract.flips import GKE_EXISTING
from tests.synth import synth


def test_the_kubeconfig_of_an_existing_cluster_is_asked_for() -> None:
    """The endpoint of an existing cluster is the cloud's response, assumed in a preview."""
    recording = synth(GKE_EXISTING)
    assert [call.token for call in recording.invocations] == ["gcp:container/getCluster:getCluster"]
    assert isinstance(recording.outputs["kubeconfig"], Secret)
