"""One picture per data set: ``plot(name, path)``; matplotlib without global state."""

from pathlib import Path
from typing import Any

from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import atomic_write
from vntransfer_lab.data import load
from vntransfer_lab.data.base import Domains, TaskStream

FORMATS = (".svg", ".png", ".pdf")
STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "vntransfer",  # equal pictures are equal files
}


def plot(
    name: str,
    path: str | Path,
    *,
    folder: str | Path | None = None,
    samples: bool = False,
    **parameters: Any,
) -> Path:
    """Draw a data set and save the picture.

    Domains: t-SNE of their rows and histograms of their responses, as in the paper's supplement;
    streams: the same pictures in every task; the synthetic set: its first two dimensions and a
    block of its covariance; TRANCOS: distances, dendrogram and sizes of the cameras, mean masks
    and densities of the domains; tables: their response and the paper's
    noise.

    Parameters
    ----------
    name
        A name of the registry.
    path
        Where to save; its ending (.svg, .png, .pdf) is the format.
    folder
        Where the data files are, as in `vntransfer_lab.data.load`.
    samples
        TRANCOS only: a photograph, density and mask per domain instead. Look at them, but do not
        publish them.
    parameters
        Those of the set.

    Returns
    -------
    Path
        Of the picture.

    Examples
    --------
    >>> import tempfile
    >>> plot("synthetic", Path(tempfile.mkdtemp()) / "six.svg", n_samples=50).name
    'six.svg'
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ArgumentError(f"path: expected an ending of {', '.join(FORMATS)}, got {str(path)!r}")
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise DataError(
            "plot: drawing needs matplotlib; install it with pip install ./lab"
        ) from error
    loaded = load(name, folder=folder, **parameters)
    with rc_context(STYLE), atomic_write(path) as file:
        figure = _draw(name, loaded, samples, parameters)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(file, format=path.suffix[1:], dpi=100, metadata=metadata)
    return path


def _draw(
    name: str, loaded: Domains | TaskStream, samples: bool, parameters: dict[str, Any]
) -> Any:
    """Figure of a set: its own, or that of its kind."""
    from vntransfer_lab.data import figures, figures_trancos

    if isinstance(loaded, TaskStream):
        return figures.draw_stream(loaded)
    if name == "synthetic":
        covariance = {k: v for k, v in parameters.items() if k in ("diagonal", "far_pair")}
        return figures.draw_synthetic(loaded, **covariance)
    if name == "trancos":
        draw = figures_trancos.draw_samples if samples else figures_trancos.draw_trancos
        return draw(loaded)
    if name == "landmine":
        return figures.draw_fields(loaded)
    if len(loaded) == 1:
        return figures.draw_table(loaded)
    return figures.draw_domains(loaded)
