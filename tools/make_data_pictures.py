"""Draw the pictures of docs/data, one per data set.

Run: python tools/make_data_pictures.py NAME ... (needs the files of the sets).
"""

import base64
import sys
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages import (
    Axis,
    Chart,
    Heatmap,
    Lines,
    Panels,
    Scatter,
    Series,
    histogram,
)
from vntransfer.pages.palette import GROUND, INK
from vntransfer.pages.picture import write_picture, write_svg
from vntransfer.pages.svg import tag, text, text_width
from vntransfer.storage.places import GENERATOR
from vntransfer_lab.data import load
from vntransfer_lab.data.base import Domains, TaskStream
from vntransfer_lab.data.pictures import area_resize
from vntransfer_lab.data.regression import NOISE, NoiseMixture, mixture_noise
from vntransfer_lab.data.trancos import Cameras

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "data" / "img"
MOST_DOMAINS = 14  # that are drawn: more cannot be distinguished
POINTS = 600  # rows of a t-SNE
_CLASSES, _PERMUTED = 10, 5  # columns of a stream's picture, and tasks of a permuted one
_SIDE = 42.0  # of one of its pictures on the screen


def draw(name: str, path: Path, *, folder: Path | None = None, **parameters: Any) -> None:
    """Draw a data set; ``folder`` and ``parameters`` are those of `vntransfer_lab.data.load`.

    Domains: t-SNE of their rows and histograms of their responses; streams: test pictures of every
    task; TRANCOS: distances of the cameras by domain, sizes and mean densities of the domains;
    tables: their response and the paper's noise.
    """
    loaded = load(name, folder=folder, **parameters)
    if isinstance(loaded, Domains):
        write_picture(chart(loaded), f"The data set {name}", path, overwrite=True)
    else:
        write_svg(stream_picture(loaded), path, overwrite=True)


def chart(loaded: Domains) -> Chart:
    """Chart of a set: its own, or that of its kind."""
    if "cameras" in loaded.extras:
        return camera_chart(loaded)
    if "terrain" in loaded.extras:
        return field_chart(loaded)
    if len(loaded) == 1:
        return table_chart(loaded)
    return domain_chart(loaded.domains, loaded.response_name)


def domain_chart(
    domains: Mapping[str, tuple[Any, Any]], response: str = "response", points: int = POINTS
) -> Panels:
    """t-SNE of the rows beside histograms of the responses, each domain by itself.

    Years are drawn on a log scale, as in the
    paper. ``points`` is the number of rows of the t-SNE, of all domains together.
    """
    shown = dict(list(domains.items())[:MOST_DOMAINS])
    responses = {name: np.asarray(y, dtype=np.float64) for name, (_, y) in shown.items()}
    y = Axis("share of the rows", log=response == "year")
    right = histogram(responses, bins=_bins(responses), x=Axis(response), y=y, title="responses")
    return Panels([_embedded(shown, list(shown), points), right], share=False)


def _embedded(domains: Mapping[str, tuple[Any, Any]], groups: list[str], points: int) -> Scatter:
    """t-SNE of the rows, colored by the group of each domain."""
    places, owner = embed(domains, points)
    group = np.array(groups)[owner]
    series = [Series(name, *places[group == name].T) for name in dict.fromkeys(groups)]
    return Scatter(series, Axis(hidden=True), Axis(hidden=True), title="t-SNE of the rows")


def embed(
    domains: Mapping[str, tuple[Any, NDArray[Any]]], n_points: int, *, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """t-SNE of a random sample of all rows, shape (n, 2), and the number of each row's domain."""
    from scipy.sparse import issparse, vstack
    from sklearn.decomposition import TruncatedSVD
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import StandardScaler

    rows = [x for x, _ in domains.values()]
    owner = np.repeat(np.arange(len(rows)), [x.shape[0] for x in rows])
    keep = np.sort(np.random.default_rng(seed).permutation(len(owner))[:n_points])
    if issparse(rows[0]):
        X = vstack(rows, format="csr")[keep]
        X = TruncatedSVD(min(50, X.shape[1] - 1), random_state=seed).fit_transform(X)
    else:
        X = StandardScaler().fit_transform(np.concatenate(rows)[keep])
    perplexity = min(30.0, (len(X) - 1) / 3)
    init = "pca" if X.shape[1] > 1 else "random"  # one feature has one principal component
    points = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(X)
    return np.asarray(points, dtype=np.float64), owner[keep]


def _bins(responses: Mapping[str, NDArray[np.float64]]) -> int | NDArray[np.float64]:
    """Bins of a response: one per value where there are few."""
    values = np.unique(np.concatenate(list(responses.values())))
    if len(values) > 12:
        return 30
    gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
    return np.arange(values[0] - gap / 2, values[-1] + gap, gap)


def field_chart(loaded: Domains) -> Panels:
    """Landmine: t-SNE by terrain, and the distances of the fields' means."""
    terrain: dict[str, str] = loaded.extras["terrain"]
    rows = [x for x, _ in loaded.values()]
    means = np.stack([x.mean(axis=0) for x in rows]) / np.concatenate(rows).std(axis=0)
    distances = np.linalg.norm(means[:, None] - means, axis=2)
    numbers = [str(i + 1) for i in range(len(rows))]
    sides: dict[str, Any] = {"row_label": "field", "column_label": "field", "label": "distance"}
    title = "distance of the fields' means"
    left = _embedded(loaded.domains, [terrain[name] for name in loaded], POINTS)
    return Panels([left, Heatmap(numbers, numbers, distances, title, **sides)], share=False)


def table_chart(loaded: Domains) -> Panels:
    """Response of a single table with and without the paper's noise, and that noise."""
    ((_, y),) = loaded.values()
    noise = NOISE[loaded.name]
    responses = {"clean": y, "with noise, λ = 1": y + mixture_noise(noise, len(y))}
    axes = {"x": Axis(loaded.response_name), "y": Axis("share of the rows")}
    left = histogram(responses, bins=60, title=f"{len(y)} rows", **axes)
    grid = np.linspace(-6, 14, 400)
    density = Series("with noise, λ = 1", grid, mixture_density(noise, grid), marks=False)
    right = Lines(
        [density], Axis("noise"), Axis("density", low=0), title="label noise of the paper"
    )
    return Panels([left, right], share=False)


def mixture_density(mixture: NoiseMixture, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Density of a mixture of Gaussians whose spreads are standard deviations."""
    weights = np.array(mixture.weights) / np.sum(mixture.weights)
    means, deviations = np.array(mixture.means), np.array(mixture.spreads)
    bells = np.exp(-0.5 * ((at[:, None] - means) / deviations) ** 2)
    return np.asarray((bells / (deviations * np.sqrt(2 * np.pi))) @ weights)


def camera_chart(loaded: Domains) -> Panels:
    """TRANCOS: distances of the cameras by domain, sizes and mean densities of the domains."""
    tree: Cameras = loaded.extras["cameras"]
    label = "distance of the mean masks"
    order = np.argsort(tree.domain, kind="stable")
    cameras_in_order = [tree.names[i] for i in order]
    distances = tree.distances[np.ix_(order, order)]
    cameras = Heatmap(cameras_in_order, cameras_in_order, distances, label, numbers=False)
    names = list(loaded)
    counts = [len(y) for _, y in loaded.values()]
    sizes = Series("pictures", range(len(names)), counts, dash="none")
    charts: list[Any] = [cameras, Lines([sizes], Axis(names=names), Axis("pictures", low=0))]
    for name, (_, y) in loaded.items():
        density = area_resize(np.mean(np.asarray(loaded.extras["density"][name]), axis=0), 9, 12)
        rows, columns = ([str(i + 1) for i in range(n)] for n in density.shape)
        title = f"{name}: {y.mean():.0f} vehicles"
        charts.append(Heatmap(rows, columns, density, title, numbers=False))
    return Panels(charts, share=False)


def stream_picture(stream: TaskStream) -> str:
    """Test pictures of every task as SVG, one row per task, one column per class.

    For permuted streams the original pictures come first, followed by some of the tasks.
    """
    maps = None if "angles" in stream.extras else stream.extras.get("maps")
    strips = {}
    for t, task in zip(range(_PERMUTED if maps else len(stream)), stream, strict=False):
        _, first = np.unique(task.y_test, return_index=True)
        x = task.x_test[first[:_CLASSES]].reshape(len(first[:_CLASSES]), -1)
        if maps and not t:
            strips["as they were"] = _strip(x[:, np.argsort(maps[0])])
        strips[task.name.replace("_", " ")] = _strip(x)
    pixels = np.rint(255 * (1 - np.concatenate(list(strips.values())).clip(0, 1)))
    data = base64.b64encode(_png(pixels.astype(np.uint8))).decode()
    left = max(map(text_width, strips)) + 16
    width, height = _SIDE * _CLASSES, _SIDE * len(strips)
    names = [
        text(name, left - 6, 24 + _SIDE * (i + 0.5), text_anchor="end")
        for i, name in enumerate(strips)
    ]
    title = text(f"{stream.name}: test pictures of each task", left, 14)
    href = f"data:image/png;base64,{data}"
    image = tag("image", x=left, y=20, width=width, height=height, href=href)
    style = (
        f"text{{font:11px sans-serif;fill:{INK['light']}}}.ground{{fill:{GROUND['light']}}}"
        "image{image-rendering:pixelated}@media (prefers-color-scheme:dark)"
        f"{{text{{fill:{INK['dark']}}}.ground{{fill:{GROUND['dark']}}}}}"
    )
    ground = tag("rect", width="100%", height="100%", class_="ground")
    content = f"<style>{style}</style>{ground}{title}{''.join(names)}{image}"
    size = {"width": left + width + 8, "height": height + 28}
    root = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "generator": GENERATOR}
    return tag("svg", content, **root, **size) + "\n"


def _strip(x: NDArray[Any]) -> NDArray[np.float64]:
    """Pictures (n, pixels) side by side with a gray rim each."""
    side = round(x[0].size ** 0.5)
    cells = np.zeros((_CLASSES, side, side))
    cells[: len(x)] = x.reshape(-1, side, side)
    rimmed = np.pad(cells, ((0, 0), (1, 1), (1, 1)), constant_values=0.4)
    return np.concatenate(list(rimmed), axis=1)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """PNG of gray pixels (height, width)."""
    from PIL import Image

    box = BytesIO()
    Image.fromarray(pixels).save(box, "png", optimize=True)
    return box.getvalue()


if __name__ == "__main__":
    for given in sys.argv[1:]:
        path = IMAGES / f"{given}.svg"
        draw(given, path)
        print(f"wrote {path}")
