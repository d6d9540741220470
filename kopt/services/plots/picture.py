"""What all pictures share: checking and writing the file, the style, and the axes of a roofline."""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.files import write_error, write_whole
from kbs.common.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
_STYLE = {"svg.hashsalt": "kopt", "text.parse_math": False, "axes.unicode_minus": False}


def check_plot(path: Path, mark: str) -> None:
    """Reject a file that cannot be written before the run, not after it; one with the same mark may be overwritten.

    Raises `UsageError` (`plot_format`, `plot_folder`, `plot_exists`), `ConfigurationError` (`matplotlib_missing`).
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(
            f"{path} is not a .png or .svg file",
            code="plot_format",
            hint="Give --plot a file with one of these suffixes.",
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigurationError(
            "--plot needs matplotlib, which is not installed",
            code="matplotlib_missing",
            hint="Install it with: pip install 'kopt[plot]'",
        )
    if not path.parent.is_dir():
        raise UsageError(
            f"no such folder: {path.parent}",
            code="plot_folder",
            hint="Create the folder, or choose another file with --plot.",
        )
    try:
        if not path.exists():
            return
        ours = path.is_file() and mark.encode() in path.read_bytes()
    except OSError as error:
        raise write_error(error, path) from error
    if not ours:
        raise UsageError(
            f"{path} exists and is not a plot of kopt",
            code="plot_exists",
            hint="Choose another file with --plot, or move that one away.",
        )


def save_picture(path: Path, mark: str, draw: Callable[[str], bytes]) -> None:
    """Write the picture that `draw` gives for a format, `png` or `svg`. Raises as `check_plot`."""
    check_plot(path, mark)
    write_whole(path, draw(path.suffix.lower().removeprefix(".")))


def draw_picture(draw: Callable[[Figure], None], size: tuple[float, float], mark: str, format: str) -> bytes:
    """The bytes of a picture of `size` inches that `draw` fills; `mark` stands in its metadata, no date or version."""
    import matplotlib.style
    from matplotlib.figure import Figure

    # No date and no version of matplotlib, so that the same data give the same bytes.
    metadata: dict[str, Any] = {"Title": mark, "Date" if format == "svg" else "Software": None}
    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # names in any script; a box is drawn
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        out = io.BytesIO()
        figure.savefig(out, format=format, dpi=120, metadata=metadata)
    return out.getvalue()


def lay_out_roofline(axes: Axes, title: str) -> None:
    """Logarithmic scales, labels and legend of a roofline, after its lines are drawn."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # powers of ten are written as formulas, which are not read here
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("intensity [FLOP/byte]", fontsize=9)
    axes.set_ylabel("rate [TFLOP/s]", fontsize=9)
    axes.set_title(visible(title), fontsize=11)
    axes.grid(which="both", linewidth=0.2)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, loc="lower right")
