"""Write the tables: `python -m rehearsal.provider_schemas --google-beta DIR --azure-native DIR
--kubernetes DIR --kueue FILE`.

The directories are checkouts, and the file has Kueue's CustomResourceDefinitions (`make manifests`); without
an option, its table is not written. The limits of Azure's SDK packages that are not installed are unchanged.
"""

import argparse
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.values.kueue_api import API_VERSION
from rehearsal.provider_schemas import Row, as_csv, azure, from_csv, kubernetes
from rehearsal.provider_schemas.terraform import Provider

KUEUE_KINDS: Final = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor")
TABLES: Final = Path(__file__).parents[2] / "ebbtide" / "declaration" / "providers" / "schemas"


def main() -> None:
    """Write the tables for the given options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--google-beta", type=Path, help="checkout of hashicorp/terraform-provider-google-beta"
    )
    parser.add_argument("--azure-native", type=Path, help="checkout of pulumi/pulumi-azure-native")
    parser.add_argument("--kubernetes", type=Path, help="checkout of pulumi/pulumi-kubernetes")
    parser.add_argument("--kueue", type=Path, help="CustomResourceDefinitions of Kueue")
    options = parser.parse_args()
    if options.google_beta:
        (TABLES / "gcp.csv").write_text(as_csv(Provider(options.google_beta).rows()))
    if options.azure_native:
        file = options.azure_native / "provider/pkg/gen/replacement.go"
        table = TABLES / "azure_native.csv"
        rows = [*azure.replacements(file), *azure.installed_limits(), *filter(_is_kept, from_csv(table))]
        table.write_text(as_csv(rows))
    if options.kubernetes:
        command = ["git", "-C", str(options.kubernetes), "rev-parse", "--short=8", "HEAD"]
        revision = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - git
        rows = kubernetes.replacements(options.kubernetes, revision)
        (TABLES / "kubernetes.csv").write_text(as_csv(rows))
    if options.kueue:
        (TABLES / "kueue.csv").write_text(as_csv(kueue_limits(yaml.safe_load_all(options.kueue.read_text()))))


def kueue_limits(definitions: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the limits of the kinds of Kueue that Ebbtide creates."""
    source = f"Kueue {PINS['kueue'].version}, CustomResourceDefinitions"
    created = [it for it in definitions if it["spec"]["names"]["kind"] in KUEUE_KINDS]
    return list(kubernetes.custom_limits(created, API_VERSION.rpartition("/")[2], source))


def _is_kept(row: Row) -> bool:
    package = row.source.partition(" ")[0]
    return package.startswith("azure-mgmt-") and not azure.is_installed(package.removeprefix("azure-mgmt-"))


if __name__ == "__main__":
    main()
