"""The programs that a worker's interpreter is started with (`python -c`).

Each makes this package importable as `evaluator`, and nothing else of kopt, so that any interpreter that has torch can
run it.
"""

from __future__ import annotations

_PACKAGE = """
import importlib.util, sys
package, *words = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "evaluator", package + "/__init__.py", submodule_search_locations=[package]
)
module = importlib.util.module_from_spec(spec)
sys.modules["evaluator"] = module
spec.loader.exec_module(module)
"""
SERVER = _PACKAGE + "from evaluator.worker.process.server import serve; serve(int(words[0]), words[1], words[2:])"
"""Arguments: the package's folder, the control socket's descriptor, `cpu` or `cuda`, further modules to import."""
PROBE = _PACKAGE + "from evaluator.worker.process.probe import probe; probe(words[0], words[1], int(words[2]))"
"""Arguments: the package's folder, the sandbox's folder, a file outside of it, a TCP port."""
STANDALONE = (
    _PACKAGE + "from pathlib import Path; from evaluator.worker.process.standalone import run; run(Path(words[0]))"
)
"""Arguments: the package's folder, the folder of the job."""
