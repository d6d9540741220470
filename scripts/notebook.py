"""Runs the cells of docs/examples/kopt.ipynb, as a notebook does, and writes what they show: `just docs`, or
`python -m scripts.notebook`."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "examples" / "kopt.ipynb"


def run_cells(cells: list[dict[str, Any]], folder: Path) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell: what it prints, then what its last line gives, as a notebook would keep them.

    All cells share one namespace and run in `folder`, where they may write.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    found: list[list[dict[str, Any]]] = []
    before = Path.cwd()
    os.chdir(folder)
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                found.append(_run("".join(cell["source"]), names, len(found) + 1))
    finally:
        os.chdir(before)
    return found


def _run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None  # type: ignore[attr-defined]  # an expression statement has a value
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        for kind, method in (("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_")):
            if hasattr(value, method):
                data[kind] = _lines(getattr(value, method)())
        outputs.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Write the outputs into the notebook. KOPT_HOME is a new folder, so that they are those of a newcomer."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KOPT_HOME"] = str(Path(folder) / "home")
        outputs = iter(run_cells(notebook["cells"], Path(folder)))
        for count, cell in enumerate((one for one in notebook["cells"] if one["cell_type"] == "code"), start=1):
            cell["execution_count"], cell["outputs"] = count, next(outputs)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
