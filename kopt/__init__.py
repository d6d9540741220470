"""Evidence for making GPU kernels faster, from Python: `kopt.ask("why is my softmax memory-bound on H100")`.

docs/python.md lists what is here and will stay. Everything is imported when it is first used: `import kopt` is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbs.common.errors import ConfigurationError as ConfigurationError
    from kbs.common.errors import IndexBusyError as IndexBusyError
    from kbs.common.errors import KoptError as KoptError
    from kbs.common.errors import NoGpuError as NoGpuError
    from kbs.common.errors import UsageError as UsageError
    from kopt.python.kernels import bench as bench
    from kopt.python.kernels import diagnose as diagnose
    from kopt.python.kernels import recommend as recommend
    from kopt.python.knowledge import ask as ask
    from kopt.python.knowledge import cite as cite
    from kopt.python.knowledge import search as search
    from kopt.python.knowledge import spec as spec
    from kopt.python.results.kernels import Benchmark as Benchmark
    from kopt.python.results.kernels import Diagnosis as Diagnosis
    from kopt.python.results.kernels import Recommendations as Recommendations
    from kopt.python.results.knowledge import Answer as Answer
    from kopt.python.results.knowledge import Citations as Citations
    from kopt.python.results.knowledge import Passages as Passages
    from kopt.python.results.knowledge import Specs as Specs
    from kopt.python.session import close as close
    from kopt.version import VERSION as __version__  # noqa: N811  # the name that Python gives a version

_FROM = {
    "ask": "kopt.python.knowledge",
    "search": "kopt.python.knowledge",
    "spec": "kopt.python.knowledge",
    "cite": "kopt.python.knowledge",
    "bench": "kopt.python.kernels",
    "diagnose": "kopt.python.kernels",
    "recommend": "kopt.python.kernels",
    "close": "kopt.python.session",
    "Answer": "kopt.python.results.knowledge",
    "Passages": "kopt.python.results.knowledge",
    "Specs": "kopt.python.results.knowledge",
    "Citations": "kopt.python.results.knowledge",
    "Benchmark": "kopt.python.results.kernels",
    "Diagnosis": "kopt.python.results.kernels",
    "Recommendations": "kopt.python.results.kernels",
    "KoptError": "kbs.common.errors",
    "UsageError": "kbs.common.errors",
    "ConfigurationError": "kbs.common.errors",
    "IndexBusyError": "kbs.common.errors",
    "NoGpuError": "kbs.common.errors",
    "__version__": "kopt.version",
}
"""Public name → the module that has it."""

__all__ = [
    "Answer",
    "Benchmark",
    "Citations",
    "ConfigurationError",
    "Diagnosis",
    "IndexBusyError",
    "KoptError",
    "NoGpuError",
    "Passages",
    "Recommendations",
    "Specs",
    "UsageError",
    "__version__",
    "ask",
    "bench",
    "cite",
    "close",
    "diagnose",
    "recommend",
    "search",
    "spec",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        from importlib import import_module

        if name not in _FROM:
            raise AttributeError(f"module 'kopt' has no attribute {name!r}")
        found = getattr(import_module(_FROM[name]), "VERSION" if name == "__version__" else name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
