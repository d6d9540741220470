"""What all sealed documents have in common: an id that is the hash of the content, a seal, one way to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import Sha256
from kbs.common.errors import KoptError, UsageError
from kbs.common.json_model import Record

KIND: Literal["kopt-receipt"] = "kopt-receipt"
"""`evaluator/receipt/receipt.py`: what kopt measured."""
EXTERNAL_KIND: Literal["kopt-external-receipt"] = "kopt-external-receipt"
"""`evaluator/external/record.py`: what a command of the user's printed."""


class Seal(Record):
    """Who wrote a receipt: see `evaluator/store/seal.py` for what it is worth."""

    algorithm: Literal["HMAC-SHA256"] = "HMAC-SHA256"
    """How it was made."""
    key_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    """First 16 hex digits of the SHA-256 of the key."""
    mac: Sha256
    """Of the receipt without its seal."""


class SealedDocument(Record):
    """A document that cannot be changed without its id, nor with it without its seal. Its kinds have `schema_version`,
    `kind` and `evidence` too."""

    id: Sha256
    """SHA-256 of the canonical JSON of all other fields but the seal."""
    seal: Seal | None = None
    """None where it is not sealed."""

    @model_validator(mode="after")
    def _id_fits(self) -> Self:
        if self.id != content_id(self.model_dump(mode="json")):
            raise ValueError("the id is not the hash of the content")
        return self


Kind = TypeVar("Kind", bound=SealedDocument)


def content_id(document: Mapping[str, object]) -> str:
    """The id that belongs to a document's JSON object, whatever id and seal it has."""
    return canonical.digest({name: value for name, value in document.items() if name not in ("id", "seal")})


def render(document: SealedDocument) -> bytes:
    """The bytes of a document."""
    data = canonical.dumps(document.model_dump(mode="json"))
    if len(data) > canonical.MAX_BYTES:
        raise KoptError(
            f"the receipt would be larger than {canonical.MAX_BYTES // 2**20} MiB",
            code="receipt_too_large",
            hint="Give fewer workloads.",
        )
    return data


def read(data: bytes, kinds: Mapping[str, type[Kind]]) -> Kind:
    """Read a document of one of these kinds. Raises `UsageError` (`receipt_invalid`) for anything else.

    White space and the order of keys are not held against it; `evaluator.store.seal.verify` is strict about them.
    """
    try:
        document = canonical.loads(data)
    except ValueError as error:
        raise _invalid(f"this is no receipt: {error}") from error
    model = model_of(document, kinds)
    if model is None and isinstance(document, dict) and document.get("kind") == EXTERNAL_KIND:
        raise UsageError(
            "this receipt records what a command of the user's printed (evidence: external): kopt measured nothing"
            " that it could measure again",
            code="external_receipt",
            hint="Run the command again: `kopt bench external KERNEL --command CMD`.",
        )
    if model is None:
        raise _invalid("this is no receipt: it is JSON of another kind")
    known = model.model_fields["schema_version"].default
    if document.get("schema_version") != known:
        raise UsageError(
            f"the receipt has schema version {str(document.get('schema_version'))[:20]}, and this kopt reads"
            f" version {known}",
            code="receipt_invalid",
            hint="Use the version of kopt that wrote it.",
        )
    try:
        return model.model_validate(document)
    except ValidationError as error:
        where, what = first_of(error)
        raise UsageError(
            f"this receipt is not whole: {f'{where}: ' if where else ''}{what}",
            code="receipt_invalid",
            hint="It was changed after it was written, or written by hand. Use the original or measure again.",
        ) from error


def model_of(document: Any, kinds: Mapping[str, type[Kind]]) -> type[Kind] | None:
    """The model of a JSON value; None where it is of none of these kinds."""
    kind = document.get("kind") if isinstance(document, dict) else None
    return kinds.get(kind) if isinstance(kind, str) else None


def first_of(error: ValidationError) -> tuple[str, str]:
    """(where, what) of the first thing that is wrong; `where` is empty for the document as a whole."""
    first = error.errors(include_input=False, include_context=False, include_url=False)[0]
    return ".".join(map(str, first["loc"]))[:200], first["msg"].removeprefix("Value error, ")


def _invalid(message: str) -> UsageError:
    return UsageError(
        message, code="receipt_invalid", hint="Give the JSON file that `kopt bench` wrote: `--receipt` names it."
    )
