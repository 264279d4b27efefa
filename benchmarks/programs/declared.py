"""Record the repository's program for a declaration with many work pools."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ebbtide.analysis.recording.record import record  # noqa: E402
from ebbtide.lazy_packages import collect_rarely  # noqa: E402

collect_rarely()  # as the command line does

POOLS = [{"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"max": 3}}] + [
    {"name": f"pool-{index}", "machine": "n2-standard-8", "capacity": "spot", "nodes": {"max": 10}}
    for index in range(int(sys.argv[1]))
]
CLUSTER = {
    "name": "train",
    "owner": "vision-team",
    "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-a"},
    "pools": POOLS,
}
recording = record(ROOT, project="ebbtide", stack="bench", config={"ebbtide:cluster": json.dumps(CLUSTER)})
made = len(recording.of_type("gcp:container/nodePool:NodePool"))
if made != len(POOLS):
    sys.exit(f"{made} node pools were made of {len(POOLS)}.")
