"""Bases of the types that commands print as JSON and `kopt schema` describes: domain types, or models made of them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, PlainSerializer, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

_PRINTED = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True, serialize_by_alias=True)


class JsonDataclass:
    """Base of the domain's dataclasses that are printed. A field that is not printed is a `Field(exclude=True)`."""

    __pydantic_config__ = _PRINTED


class JsonModel(BaseModel):
    """Base of what is printed in another shape than the domain has it. The docstring says why the shape differs."""

    model_config = ConfigDict(**_PRINTED, from_attributes=True, validate_by_name=True)

    @classmethod
    def from_domain(cls, source: object) -> Self:
        """From an object of the domain: its attributes of the same name, or of the field's `validation_alias`."""
        return cls.model_validate(source)


class FrozenModel(BaseModel):
    """Base of documents that are stored or exchanged: immutable, with the declared fields and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(FrozenModel):
    """Base of parts of stored documents that are printed as they are kept."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


JsonNumber = Annotated[Decimal, PlainSerializer(float, return_type=float)]
"""A decimal that JSON has as a number."""


class DescribedSchema(GenerateJsonSchema):
    """Describes each property with the docstring below its field. Read here alone: no other command needs the text."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """With the docstrings of a model's fields."""
        return self._described(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """With the docstrings of a dataclass's fields."""
        return self._described(schema, super().dataclass_schema(schema))

    def _described(self, schema: Any, made: JsonSchemaValue) -> JsonSchemaValue:
        inner = schema["schema"]
        while "fields" not in inner:
            if "schema" not in inner:
                return made
            inner = inner["schema"]
        fields = inner["fields"]
        named = fields.items() if isinstance(fields, dict) else [(field["name"], field) for field in fields]
        texts = _docstrings(schema["cls"])
        alias = "serialization_alias" if self.mode == "serialization" else "validation_alias"
        for name, field in named:
            key = field.get(alias, name)
            found = made.get("properties", {}).get(key if isinstance(key, str) else name)
            if found is not None and name in texts:
                found.setdefault("description", texts[name])
        return made


def _docstrings(owner: type) -> dict[str, str]:
    """Name of a field → the string that stands below it in the class, or in one that it is derived from."""
    found: dict[str, str] = {}
    for one in reversed(owner.__mro__):
        if "__annotations__" not in vars(one) or one.__module__.partition(".")[0] in ("pydantic", "pydantic_settings"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in pairwise(body.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                    found[name] = inspect.cleandoc(text)
    return found


class _PrintedSchema(DescribedSchema):
    """Describes what is printed: a key that is always there has no default, and none of them can be written."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Without the default, where the key is required."""
        if self._config.json_schema_serialization_defaults_required:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """Without `readOnly`, which computed fields have."""
        made = super().generate_inner(schema)
        made.pop("readOnly", None)
        return made


def json_value(value: object) -> Any:
    """A printed object as JSON has it."""
    adapter: TypeAdapter[Any] = TypeAdapter(type(value))
    return adapter.dump_python(value, mode="json", by_alias=True)


def json_schema(type_: Any) -> dict[str, Any]:
    """The JSON Schema of what `json_value` gives of such a type."""
    adapter: TypeAdapter[Any] = TypeAdapter(type_)
    return adapter.json_schema(mode="serialization", schema_generator=_PrintedSchema)


def document_schema(type_: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a document that is read or exchanged."""
    return type_.model_json_schema(schema_generator=DescribedSchema)
