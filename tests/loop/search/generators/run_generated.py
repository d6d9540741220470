"""`python run_generated.py` runs generated kernels in Triton's interpreter, and prints the largest error of each.

One JSON object: reference → family → error relative to the largest element of the result; or, for a reference that no
generator reads, what it said.
"""

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

import torch  # Triton reads the variable when it is imported

from evaluator.graph import read_graph
from evaluator.worker.counting.graph import trace
from evaluator.worker.loading.subjects import make_subject
from kbs.evidence.vocabulary import vocabulary
from loop.gate.constants.hardware import hardware_constants
from loop.gate.numbers.accounting import integers
from loop.gate.numbers.figures import Chosen
from loop.search.generators import UnreadableError, generated
from loop.search.study import ordered
from loop.search.variant import Target, Variant
from tests.loop.search.generators.references import LARGE, REFERENCES, UNREADABLE

TARGET = Target(capability=90, multiprocessors=8, bandwidth=3e12, l2_bytes=50 << 20)
FOLDER = Path(tempfile.mkdtemp())


def imported(name: str, text: str) -> Any:
    """A text as a module."""
    path = FOLDER / f"{name.replace('-', '_')}.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def variants(name: str, text: str) -> tuple[Variant, ...]:
    """The families of a reference."""
    (FOLDER / "reference.py").write_text(text, "utf-8")
    message = {"form": "kernelbench", "role": "reference", "file": "reference.py", "dims": {}, "inputs": ""}
    return generated(read_graph(trace(make_subject(message, FOLDER, torch.device("cpu")), 0)), name, TARGET)


def errors(name: str, text: str) -> dict[str, float]:
    """Family → error of its first configuration."""
    reference = imported(f"ref-{name}", text)
    torch.manual_seed(1)
    model = reference.Model()
    for weight in model.parameters():
        weight.data = torch.randn_like(weight)
    inputs = reference.get_inputs()
    with torch.no_grad():
        wanted = model(*inputs)
    found = {}
    for variant in variants(name, text):
        if not ordered(variant):  # no configuration can work
            continue
        own = imported(f"own-{name}-{variant.name}", variant.render(ordered(variant)[0])).ModelNew()
        own.load_state_dict(model.state_dict())
        got = own(*inputs)
        if (got.shape, got.dtype, got.stride()) != (wanted.shape, wanted.dtype, wanted.stride()):
            found[variant.name] = 1e9
            continue
        apart = (got.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp(min=1e-9)
        found[variant.name] = float(apart.nan_to_num(nan=1e9))
    return found


def refused(name: str, text: str) -> dict[str, Any]:
    """Constants that the gate would refuse, in a few of the configurations of each family."""
    sizes = Chosen.of(frozenset(integers(text)), frozenset())
    texts = [variant.render(config) for variant in variants(name, text) for config in ordered(variant)[::40]]
    found = [list(hardware_constants(one, "kernel.py", vocabulary(), frozenset(), sizes)) for one in texts]
    return {"texts": len(texts), "refused": [f"{one.text}: {one.why}" for specs in found for one in specs]}


result: dict[str, Any] = {name: errors(name, text) for name, text in REFERENCES.items()}
for name, text in UNREADABLE.items():
    try:
        result[name] = [one.name for one in variants(name, text)]
    except UnreadableError as error:
        result[name] = str(error)
result["the gate"] = {name: refused(name, text) for name, text in {**REFERENCES, **LARGE}.items()}
print(json.dumps(result))
