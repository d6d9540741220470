"""What a candidate's code does is told, however it is written; what libraries do is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LISTEN = """
import importlib.util, json, os, sys
from pathlib import Path
import torch, triton
from evaluator.worker.measurement.deeds import watch

sys.stdout = sys.stderr
for path in map(Path, sys.argv[1:]):
    reader, writer = os.pipe()
    if os.fork() == 0:
        did = watch(path.parent)
        spec = importlib.util.spec_from_file_location("candidate", path)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except OSError:
            pass
        os.write(writer, json.dumps(did()).encode())
        os._exit(0)
    os.wait()
    print(os.read(reader, 60000).decode(), file=sys.__stdout__)
"""

DEEDS: dict[str, tuple[str, str]] = {
    "the garbage collector": ("scans_memory", "import gc\ngc.get_objects()"),
    "by a name that is made": ("scans_memory", "import gc\ngetattr(gc, 'get_' + 'tcejbo'[::-1] + 's')()"),
    "by a helper": (
        "scans_memory",
        "def f(m, n):\n    return getattr(__import__(m), n)()\nf('g' + 'c', 'get_objects')",
    ),
    "by text that is executed": (
        "scans_memory",
        "exec(bytes.fromhex('696d706f72742067633b2067632e6765745f6f626a656374732829'))",
    ),
    "by text under a name": (
        "scans_memory",
        "exec(compile('import gc; gc.get_objects()', '<x>', 'exec'))",
    ),
    "by a thread of the library": (
        "scans_memory",
        "import gc, threading\nt = threading.Thread(target=gc.get_objects)\nt.start(), t.join()",
    ),
    "by a callback": (
        "scans_memory",
        "import contextlib, gc\nwith contextlib.ExitStack() as s:\n    s.callback(gc.get_objects)",
    ),
    "by a library that hands it on": (
        "scans_memory",
        "import gc\nfrom torch.utils._pytree import tree_map\ntree_map(lambda f: f(), [gc.get_objects])",
    ),
    "frames by a library that hands it on": (
        "reads_frames",
        "import sys\nfrom torch.utils._pytree import tree_map\ntree_map(sys._getframe, [1])",
    ),
    "functions of inspect by a library": (
        "reads_frames",
        "import inspect\nfrom torch.utils._pytree import tree_map\ntree_map(inspect.stack, [1])",
    ),
    "referrers": ("scans_memory", "import gc\ngc.get_referrers(gc)"),
    "its memory as a file": ("scans_memory", "open('/proc/' + 'self/mem', 'rb')"),
    "its memory after a file": ("scans_memory", "open(__file__ + 'x', 'w')\nopen(b'/proc/self/mem', 'rb')"),
    "who started it": ("scans_memory", "import os\nos.chdir('/proc/self')\nopen('cmdline').read()"),
    "its threads": ("scans_memory", "import pathlib\nlist(pathlib.Path('/proc/self/task').iterdir())"),
    "frames": ("reads_frames", "import sys\nsys._getframe(0)"),
    "frames by a name": ("reads_frames", "import sys\nvars(sys)['_get' + 'frame']()"),
    "frames by inspect": ("reads_frames", "import inspect\ninspect.stack()"),
    "frames by a callback": (
        "reads_frames",
        "import contextlib, sys\nwith contextlib.ExitStack() as s:\n    s.callback(sys._getframe)",
    ),
    "frames of threads": ("reads_frames", "import sys\nsys._current_frames()"),
    "the frame of an error": (
        "reads_frames",
        "try:\n    1 / 0\nexcept ArithmeticError as e:\n    getattr(e.__traceback__, 'tb_' + 'frame')",
    ),
    "code": ("dynamic_code", "exec('x = 1')"),
    "another program": ("starts_processes", "import subprocess\nsubprocess.run(['true'])"),
    "a copy of itself": ("starts_processes", "import os\nif os.fork() == 0:\n    os._exit(0)"),
    "a signal": ("signals_processes", "import os\nos.kill(os.getpid(), 0)"),
    "the network": ("network", "import socket\nsocket.create_connection(('127.0.0.1', 9), 0.1)"),
    "a file": ("writes_files", "import pathlib, tempfile\npathlib.Path(tempfile.mkdtemp(), 'x').write_text('x')"),
    "a library": ("loads_libraries", "import ctypes\nctypes.CDLL(None)"),
    "an address": ("raw_memory", "import ctypes\nctypes.string_at(id(1), 8)"),
}

NOTHING = {
    "imports": "import torch._dynamo, multiprocessing.pool, concurrent.futures, asyncio, unittest.mock, numpy.testing",
    "records": "import collections, dataclasses, enum, typing\nA = collections.namedtuple('A', 'x y')\n"
    "@dataclasses.dataclass\nclass B:\n    x: int = 1\nC = enum.Enum('C', 'x y')\nT = typing.TypeVar('T')\n"
    "class D(typing.NamedTuple):\n    x: int\nprint(A(1, 2), B(), C.x, D(1))",
    "messages": "import logging, traceback, warnings\nlogging.getLogger(__name__).warning('x')\nwarnings.warn('x')\n"
    "try:\n    1 / 0\nexcept ArithmeticError:\n    traceback.print_exc()",
    "operators": "import torch\ntorch.nn.Linear(3, 3)(torch.rand(2, 3)).sum().backward()\n"
    "@torch.library.custom_op('mine::f', mutates_args=())\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x + 1\n"
    "f(torch.ones(2))",
    "a kernel": "import triton\nimport triton.language as tl\n@triton.autotune([triton.Config({'N': 16})], key=['n'])\n"
    "@triton.jit\ndef k(x, n, N: tl.constexpr):\n    tl.store(x + tl.arange(0, N), 1.0)\n",
    "reading": "open(__file__).read()\nopen('/proc/cpuinfo').read()\nopen('/proc/self/cgroup').read()",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    """What is told of each text, from one process that has imported torch and forks for each."""
    texts = {**{name: text for name, (_, text) in DEEDS.items()}, **NOTHING}
    paths = [tmp_path_factory.mktemp("candidate") / "candidate.py" for _ in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text("# a candidate\n" + text, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[4]), *sys.path])}
    command = [sys.executable, "-c", LISTEN, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return dict(zip(texts, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.processes
@pytest.mark.parametrize("name", DEEDS)
def test_what_it_did_is_told(name: str, told: dict[str, list[dict[str, object]]]) -> None:
    """Once, with the line that did it where the file has one."""
    id_, text = DEEDS[name]
    found = [deed for deed in told[name] if deed["id"] == id_]
    assert found, told[name]
    assert len({deed["said"] for deed in told[name]}) == len(told[name])
    within = range(2, len(text.splitlines()) + 2)
    assert found[0]["line"] in within or name in ("by text that is executed", "by a thread of the library"), found


@pytest.mark.processes
@pytest.mark.parametrize("name", NOTHING)
def test_what_libraries_do_is_not(name: str, told: dict[str, list[dict[str, object]]]) -> None:
    assert told[name] == []
