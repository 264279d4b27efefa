"""Base class of every part of the declaration, types that the parts share, and the metadata of their fields.

Rules, the comparison of existing pools and the documentation of overrides follow from the metadata
(`pool_inputs`).
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, overload

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.forms import Form
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.values import durations
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.documents import Described
from ebbtide.values.paths import ancestors
from ebbtide.values.quantities import LARGEST

_Read = TypeVar("_Read")
_Written = TypeVar("_Written")

if TYPE_CHECKING:

    class _Model(Described):
        model_config = ConfigDict(strict=True)  # pyrefly compares arguments with the descriptors below

        @classmethod
        def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self: ...

    class Converted(Generic[_Read, _Written]):
        """A field whose constructor argument has the second type, and whose attribute has the first.

        Type checkers see a descriptor, as in Python's dataclasses (typing specification, dataclasses,
        descriptor-typed fields, 2026). Pydantic sees the first type, whose validators convert.
        """

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type) -> _Read: ...
        def __get__(self, instance: Any, owner: type) -> Any: ...
        def __set__(self, instance: Any, value: _Written) -> None: ...

else:

    class _Refusing(type(BaseModel)):
        """Reports invalid constructor arguments as faults of the declaration, not as pydantic's errors."""

        def __call__(cls, *args: object, **fields: object) -> BaseModel:
            try:
                return super().__call__(*args, **fields)
            except ValidationError as error:
                from ebbtide.declaration.model.shape.findings import shape_faults  # noqa: PLC0415 - for errors alone

                names = {name: field.alias for name, field in cls.model_fields.items()}
                written = {names.get(name, name): value for name, value in fields.items()}
                faults = shape_faults(cls, error, written)
                raise DeclarationError(faults, subject=f"{cls.__name__}(…)") from error

    class _Model(Described, metaclass=_Refusing):
        pass

    class Converted:
        """Runtime form of `Converted` above."""

        def __class_getitem__(cls, types: tuple[object, object]) -> object:
            return types[0]


Duration = Annotated[
    timedelta,
    BeforeValidator(durations.parse, json_schema_input_type=str),
    PlainSerializer(durations.in_seconds, return_type=str),
]
"""A duration with its unit: `30s`, `90m`, `12h`, `7d`."""
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
"""A non-negative integer."""
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
"""A positive integer."""
SHARE = r"^(100|[1-9]\d?)%$"
"""Form of a share of nodes, without `re`'s flags: JSON Schema has the same pattern."""
Name = Annotated[str, Field(strict=True, min_length=1)]
"""A non-empty name. The allowed characters are checked by the cloud's rules."""
Overrides = dict[str, Any]
"""Inputs of a provider's resource by their camelCase names, applied last."""
_AGENT_POOL: Final = "azure-native 3.29.0, AgentPool"
Change: TypeAlias = Literal["in place", "recreates nodes", "fixed"]
"""Effect of a changed input on an existing pool. `recreates nodes`: an upgrade, a few nodes at a time.
`fixed`: `ebbtide up` replaces the pool."""
POOL_TYPES: Final = by_cloud(
    gke="gcp:container/nodePool:NodePool", aks="azure-native:containerservice:AgentPool"
)
"""Type tokens of node pools."""
_NEW: Final = frozenset({"name", "namePrefix", "initialNodeCount"})
"""Inputs that the provider replaces a pool for, and whose change is another pool, or is ignored."""


def default(value: object) -> Any:
    """Return the default of a `Converted` field, untyped: a type checker would compare it with the
    descriptor."""
    return value


class Declared(_Model):
    """A part of the declaration: frozen, camelCase in YAML and snake_case in Python, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: to_camel(name.removesuffix("_")),
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,  # a part that is declared in a whole is validated by the whole
    )

    def __copy__(self) -> Self:
        """Return a copy without cached properties, which `model_copy` may make obsolete."""
        copied = super().__copy__()
        for name in vars(copied).keys() - type(self).model_fields.keys():
            del vars(copied)[name]
        return copied


def _moment(value: object) -> datetime:
    """Return a time in UTC.

    Raises:
        PydanticCustomError: it is not a time with its time zone.
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise PydanticCustomError("moment", "not a time with its time zone")
    return moment.astimezone(UTC)


def rfc3339(moment: datetime) -> str:
    """Format a time as the clouds' APIs do: `2026-12-01T08:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Moment = Annotated[
    datetime, BeforeValidator(_moment, json_schema_input_type=str), PlainSerializer(rfc3339, return_type=str)
]
"""A time with its time zone: `2026-12-01T08:00Z`."""

OptionalMoment = Converted[Moment | None, datetime | str | None]
"""An optional time."""

OptionalDuration = Converted[Duration | None, timedelta | str | None]
"""An optional duration."""


def _nodes_or_share(value: object) -> object:
    number = type(value) is int and 0 <= value <= LARGEST
    if number or (isinstance(value, str) and re.search(SHARE, value)):
        return value
    raise PydanticCustomError("nodes_or_share", "neither a number of nodes nor a share of them")


NodesOrShare = Annotated[
    int | str,
    BeforeValidator(_nodes_or_share, json_schema_input_type=Count | Annotated[str, Field(pattern=SHARE)]),
]
"""A number of nodes, or a share of a pool's nodes: `2`, `33%`."""


Names = Converted[tuple[Name, ...], list[str] | tuple[str, ...]]
"""Names, in order."""


def _zone(value: object) -> object:
    return str(value) if type(value) is int else value


Zone = Annotated[Name, BeforeValidator(_zone, json_schema_input_type=str | int)]
"""A zone by its name, or on AKS by its number."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a cloud's node pool that a field becomes, under the provider's names.

    Attributes:
        paths: their paths; each includes everything below it.
        form: the form in which one of them has the field's value, to write it and to read it; None if the
            component and the reader compute it.
        at: the path of that input.
    """

    cloud: CloudKind
    paths: tuple[str, ...]
    form: Form | None
    at: str


def gke(*paths: str, form: Form | None = None, at: str = "") -> Inputs:
    """Return inputs of `gcp.container.NodePool`.

    Args:
        paths: their paths, without those that are below an input of another field.
        form: the form of the field's value.
        at: the path of the value. Default: the first of the paths.
    """
    return Inputs(CloudKind.GKE, paths, form, at or "".join(paths[:1]))


def aks(*paths: str, form: Form | None = None, at: str = "") -> Inputs:
    """Return inputs of `azure-native.containerservice.AgentPool`; arguments as of `gke`."""
    return Inputs(CloudKind.AKS, paths, form, at or "".join(paths[:1]))


def change_of(cloud: CloudKind, path: str) -> Change:
    """Return the effect of a changed input on an existing pool, from the tables of constraints."""
    constraints = constraints_of(POOL_TYPES[cloud])
    paths = {path, *ancestors(path)}
    if (constraints.is_replaced(path) or paths & constraints.fixed) and path not in _NEW:
        return "fixed"
    return "recreates nodes" if paths & constraints.recreates else "in place"


@dataclass(frozen=True, slots=True)
class OnlyOn:
    """The only cloud that has a field.

    Attributes:
        reason: equivalent on the other cloud, or the consequence.
        fix: what to write there. Default: remove the field.
        source: source of the restriction.
        what: name in messages. Default: the field's.
    """

    cloud: CloudKind
    reason: str
    fix: str = ""
    source: str = _AGENT_POOL
    what: str = ""


only_gke = partial(OnlyOn, CloudKind.GKE)
"""Mark a field that only GKE has; arguments as of `OnlyOn`."""
only_aks = partial(OnlyOn, CloudKind.AKS)
"""Mark a field that only AKS has; arguments as of `OnlyOn`."""
