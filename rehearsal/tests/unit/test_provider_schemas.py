"""The tables of the providers' schemas are what their generator makes."""

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ebbtide.declaration.providers.constraints import Limit, constraints_of
from ebbtide.declaration.providers.schema import arguments, properties_of
from rehearsal.provider_schemas import Row, as_csv, azure, from_csv, kubernetes
from rehearsal.provider_schemas.__main__ import TABLES, kueue_limits
from rehearsal.provider_schemas.go_literals import Call, Literal, Source
from rehearsal.provider_schemas.terraform import Provider, schemas
from tests.manifests import KUEUE, upstream


def test_limits_of_aks_are_those_of_the_installed_sdk() -> None:
    """After an update of azure-mgmt-containerservice, `python -m rehearsal.provider_schemas` is due."""
    source = f"azure-mgmt-containerservice {metadata.version('azure-mgmt-containerservice')}"
    installed = {row for row in azure.installed_limits() if row.source == source}
    assert installed == {
        row for row in from_csv(TABLES / "azure_native.csv") if "containerservice" in row.source
    }
    assert len(installed) > 50


@pytest.mark.released(KUEUE)
def test_limits_of_kueue_are_those_of_its_definitions() -> None:
    """After an update of Kueue, `python -m rehearsal.provider_schemas --kueue` is due."""
    assert from_csv(TABLES / "kueue.csv") == sorted(set(kueue_limits(upstream(KUEUE))))


@pytest.mark.parametrize("name", ["gcp.csv", "azure_native.csv", "kubernetes.csv", "kueue.csv"])
def test_tables_are_as_the_generator_writes_them(name: str) -> None:
    """In order, without repetition, each row with its source and version."""
    rows = from_csv(TABLES / name)
    assert (TABLES / name).read_text() == as_csv(rows)
    assert all(re.search(r"\d", row.source) for row in rows)


def test_each_row_is_run() -> None:
    """Every constraint in the tables is one that `Constraints` has, or a limit that is checked."""
    tables = ("gcp.csv", "azure_native.csv", "kubernetes.csv", "kueue.csv", "noted.csv")
    names = {row.constraint for table in tables for row in from_csv(TABLES / table)}
    limits = {"enum", "minimum", "maximum", "shortest", "longest", "pattern", "most"}
    others = {"replace", "fixed", "recreates", "computed", "default", "fills", "required", "same"}
    assert names == limits | others


@pytest.mark.parametrize("token", dict.fromkeys(token for token, _, _ in schemas()))
def test_documented_replacements_are_in_the_table(token: str) -> None:
    """The table has each property that the installed SDK documents as forcing a new resource."""
    class_ = arguments(token)
    documented = {
        name
        for name, item in properties_of(class_).items()
        if "forces a new resource" in str(getattr(class_, item.python).__doc__)
    }
    assert documented <= constraints_of(token).replaces


@pytest.mark.parametrize(
    ("name", "limit", "allowed", "refused"),
    [
        ("enum", "A|B", ["A"], ["C", "a"]),
        ("minimum", "8", [8, 9.5, "8", True, None], [7, 7.9, "7"]),
        ("maximum", "8", [8, -1], [9, "9", "words"]),
        ("minimum", "-1", [-1, 0, "-1"], [-2, "-2"]),
        ("shortest", "2", ["ab", 1], ["a"]),
        ("longest", "2", ["ab", 333], ["abc"]),
        ("most", "2", [[1, 2], {"a": 1}, "abc"], [[1, 2, 3], {"a": 1, "b": 2, "c": 3}]),
        ("pattern", "^a", ["ab", 1], ["ba"]),
    ],
)
def test_a_limit_allows_its_own_values_and_those_of_other_types(
    name: str, limit: str, allowed: list[Any], refused: list[Any]
) -> None:
    """Numbers also as text, and no limit of a type that it is not for."""
    row = Limit("path", name, limit)
    assert [value for value in allowed if not row.allows(value)] == []
    assert [value for value in refused if row.allows(value)] == []


SCHEMA = (Path(__file__).parent / "terraform_schema.go.txt").read_text(encoding="utf-8")


def test_go_literals() -> None:
    """Maps, lists, calls and functions of Terraform's schemas are read; an expression is kept as such."""
    read: dict[str, Any] = Source(SCHEMA).schemas()
    labels, disk = read["schemaLabels"], read["schemaDisk"][""]
    assert list(labels) == ["taint", "metadata", "disk_size_gb"]
    assert labels["disk_size_gb"] == Call("schemaDisk", ())
    effect = labels["taint"].keyed["Elem"].keyed["Schema"].keyed["effect"].keyed["ValidateFunc"]
    assert effect == Call("validation.StringInSlice", (Literal(items=("NO_SCHEDULE", "NO_EXECUTE")), False))
    assert disk.keyed["ValidateFunc"] == Call("validation.IntAtLeast", (10,))
    assert disk.keyed["Default"] == Call("expression")


def test_a_sum_with_a_call_is_an_expression() -> None:
    """Texts are joined; what Go computes is not."""
    text = 'var s = map[string]*schema.Schema{"a": {Default: 2 * one() + two(), Description: "x" + "y"}}'
    (schema,) = Source(text).schemas()["s"].values()
    assert schema.keyed == {"Default": Call("expression"), "Description": "xy"}


def test_rows_of_a_terraform_schema(tmp_path: Path) -> None:
    """Pulumi's names, and every constraint that a schema has, with file and release."""
    for token, file, name in schemas():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        body = SCHEMA.partition("{")[2].partition("\n}\n")[0] if token.endswith(":Bucket") else ""
        body = body.replace("metadata", "labels").replace("taint", "lifecycle_rule")
        existing = path.read_text() if path.exists() else ""
        path.write_text(f"{existing}\nvar {name} = map[string]*schema.Schema{{{body}}}\n")
    (tmp_path / "CHANGELOG.md").write_text("## 9.1.0 (Unreleased)\n\n## 9.0.1 (August 18, 2026)\n")
    assert list(Provider(tmp_path).rows()) == [
        Row(
            "gcp:storage/bucket:Bucket",
            "labels",
            "replace",
            "within",
            "terraform-provider-google-beta 9.0.1 resource_storage_bucket.go",
        )
    ]


FORCE_NEW = (Path(__file__).parent / "kubernetes_force_new.go.txt").read_text(encoding="utf-8")


def test_replacements_of_kubernetes(tmp_path: Path) -> None:
    """Lists of variables and functions, kinds that an input makes mutable, and fields of every kind."""
    file = tmp_path / kubernetes.FILE
    file.parent.mkdir(parents=True)
    file.write_text(FORCE_NEW)
    rows = list(kubernetes.replacements(tmp_path, "abc"))
    assert {(row.type, row.property, row.value) for row in rows} == {
        ("kubernetes:*", "metadata.name", "within"),
        ("kubernetes:apps/v1:Deployment", "spec.selector", "within"),
        ("kubernetes:core/v1:Pod", "spec.containers.image", "within"),
        ("kubernetes:core/v1:Pod", "spec.other.image", "within"),
        ("kubernetes:core/v1:Pod", "spec.volumes", "within"),
        ("kubernetes:core/v1:Secret", "data", "unless enableSecretMutable"),
        ("kubernetes:core/v1:Secret", "type", "unless enableSecretMutable"),
    }
    assert {(row.constraint, row.source) for row in rows} == {
        ("replace", f"pulumi-kubernetes abc, {kubernetes.FILE}")
    }


def test_replacements_of_azure_native(tmp_path: Path) -> None:
    """Names apply anywhere in the resource; comments and other modules do not."""
    file = tmp_path / "replacement.go"
    file.write_text(
        "var forceNewMap = map[string]{\n"
        '\t"ContainerService": {\n\t\t"ManagedCluster": codegen.NewStringSet(\n'
        '\t\t\t// "dnsPrefix"\n\t\t\t"serviceCidr",\n\t\t),\n\t},\n\t"Other": {\n'
        '\t\t"AgentPool": codegen.NewStringSet("vmSize"),\n\t},\n}\nvar noForceNewMap = 1\n'
    )
    rows = [(row.type, row.property, row.constraint, row.value) for row in azure.replacements(file)]
    cluster = "azure-native:containerservice:ManagedCluster"
    assert rows == [(cluster, "networkProfile.serviceCidr", "replace", "within")]
