"""Locations in the declaration for pydantic's error locations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ebbtide.values.paths import Key, path_text


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a declaration, and its expected type.

    Attributes:
        keys: keys and indexes of its path, as spelled in the declaration.
        annotation: expected type; None for an unknown key.
        owner: part of the declaration that the last key is a field of; None for an item of a list or of a
            mapping with free keys.
        variants: the owner and its alternatives, such as the other capacity types.
        field: the field, if it is one.
        value: the written value; None if there is none.
        as_word: whether a word replaces the owner, such as `spot` for `{kind: spot}`; the keys then end at
            the word.
    """

    keys: tuple[Key, ...]
    annotation: object
    owner: type[BaseModel] | None = None
    variants: tuple[type[BaseModel], ...] = ()
    field: FieldInfo | None = None
    value: object = None
    as_word: bool = False

    @property
    def path(self) -> str:
        """Path as text."""
        return path_text(self.keys)

    @property
    def name(self) -> str:
        """Name for messages: the last key, with the index of an item, such as `zones[0]`."""
        last_word = max((i for i, key in enumerate(self.keys) if isinstance(key, str)), default=0)
        return path_text(self.keys[last_word:]) or "the declaration"


def _leaves(annotation: object) -> Iterator[object]:
    """Return the types that an annotation allows, without None."""
    if get_origin(annotation) is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _leaves(member)
    elif annotation is not type(None):
        yield annotation


def models_in(annotation: object) -> tuple[type[BaseModel], ...]:
    """Return the parts of the declaration that an annotation allows."""
    return tuple(
        leaf for leaf in _leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, BaseModel)
    )


def item_of(annotation: object) -> object:
    """Return the type of the items of a list, or of the values of a mapping with free keys."""
    leaf = next(_leaves(annotation), None)
    arguments = get_args(leaf)
    return arguments[1] if get_origin(leaf) is dict else arguments[0] if arguments else None


def leaf_of(annotation: object) -> object:
    """Return the first type that an annotation allows."""
    return next(_leaves(annotation), None)


def words_of(annotation: object) -> tuple[str, ...]:
    """Return the words that an annotation allows, of a Literal or an Enum."""
    leaf = leaf_of(annotation)
    if get_origin(leaf) is Literal:
        return tuple(str(word) for word in get_args(leaf))
    if isinstance(leaf, type) and issubclass(leaf, Enum):
        return tuple(str(member.value) for member in leaf)
    return ()


def kind_of(model: type[BaseModel]) -> str:
    """Return the `kind` of a variant, or what a step does (`do`); empty for other parts."""
    field = model.model_fields.get("do") or model.model_fields.get("kind")
    return next(iter(words_of(field.annotation)), "") if field else ""


@cache
def aliases_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return the fields of a part of the declaration by their YAML names."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _field(model: type[BaseModel], key: str) -> FieldInfo | None:
    return aliases_of(model).get(key) or model.model_fields.get(key)


def has_defaults_only(annotation: object) -> bool:
    """Return whether an annotation allows a part of the declaration without required fields."""
    return any(
        not any(field.is_required() for field in model.model_fields.values())
        for model in models_in(annotation)
    )


def null_fields(annotation: object, value: object, keys: tuple[Key, ...] = ()) -> Iterator[Location]:
    """Yield the location of each optional field that is null; keys of labels and overrides are not fields.

    Args:
        annotation: type of the value.
        value: the written value.
        keys: keys of its path.
    """
    if isinstance(value, Mapping):
        written = cast("Mapping[str, object]", value)
        models = models_in(annotation)
        of_kind = (model for model in models if kind_of(model) == written.get("kind"))
        owner = next(of_kind, models[0] if models else None)
        for key, item in written.items():
            field = _field(owner, key) if owner else None
            below = field.annotation if field else item_of(annotation)
            is_kind = key == "kind" and len(models) > 1
            if item is None and field is not None and not field.is_required() and not is_kind:
                yield Location((*keys, key), below, owner, models, field)
            else:
                yield from null_fields(below, item, (*keys, key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(cast("Sequence[object]", value)):
            yield from null_fields(item_of(annotation), item, (*keys, index))


def _child(value: object, key: Key) -> object:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).get(key)
    if isinstance(value, Sequence) and not isinstance(value, str) and isinstance(key, int):
        items = cast("Sequence[object]", value)
        return items[key] if key < len(items) else None
    return None


def location_of(model: type[BaseModel], loc: Sequence[Key], written: object) -> Location:
    """Return the location in the declaration of an error.

    Args:
        model: the validated model.
        loc: pydantic's location, which also names the chosen variant of a union.
        written: the value that was validated.
    """
    location = Location(keys=(), annotation=model, value=written)
    variants: tuple[type[BaseModel], ...] = ()
    for part in loc:
        if part == "[key]":
            break
        models = models_in(location.annotation)
        if len(models) > 1:
            chosen = next((member for member in models if kind_of(member) == part), models[0])
            variants = (chosen, *(member for member in models if member is not chosen))
            location = Location(location.keys, chosen, value=location.value)
            continue
        if not models:
            key = str(part) if get_origin(leaf_of(location.annotation)) is dict else part
            location = Location(
                (*location.keys, key), item_of(location.annotation), value=_child(location.value, part)
            )
            continue
        owner = models[0]
        field = _field(owner, str(part))
        as_word = isinstance(location.value, str)
        location = Location(
            keys=location.keys if as_word else (*location.keys, str(part)),
            annotation=field.annotation if field else None,
            owner=owner,
            variants=variants if owner in variants else (owner,),
            field=field,
            value=location.value if as_word else _child(location.value, part),
            as_word=as_word,
        )
    return location
