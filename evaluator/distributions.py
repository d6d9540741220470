"""provisional"""

from __future__ import annotations
import torch
from pydantic import BaseModel, ConfigDict


class Distribution(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    stretched: bool
    meaning: str


DISTRIBUTIONS = tuple(
    Distribution(name=n, stretched=s, meaning=n)
    for n, s in (
        ("given", False),
        ("normal", False),
        ("small", False),
        ("large", True),
        ("offset", True),
        ("mixed", False),
        ("binary", False),
    )
)


def draw(d, given, generator):
    if not given.is_floating_point():
        return given
    x = torch.randn(given.shape, generator=generator).to(given)
    if d.name == "small":
        x = x * 1e-3
    if d.name == "large":
        x = x * 64
    if d.name == "offset":
        x = x + 10
    if d.name == "mixed":
        x = x * torch.pow(10, torch.rand(given.shape, generator=generator) * 6 - 3).to(given)
    if d.name == "binary":
        x = (x > 0).to(given)
    return x


def jitter(given, generator):
    if not given.is_floating_point():
        return given
    return given * (1 + 2**-6 * (2 * torch.rand(given.shape, generator=generator) - 1)).to(given)


def must_be_exact(oracle, native, dtype):
    return False
