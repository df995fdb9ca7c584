"""Pictures of every kind of set, and the docs pages that show them."""

import re
from pathlib import Path

import numpy as np
import pytest

from lab_helpers.docs_code import load_tool
from lab_helpers.makers import MAKERS, SMALL
from vntransfer_lab.data.files import locate
from vntransfer_lab.data.registry import DATASETS
from vntransfer_lab.data.regression import NOISE

tool = load_tool("make_data_pictures")
DOCS = Path(__file__).parents[3] / "docs" / "data"
DRAWN = ["amazon", "trancos", "landmine", "parkinsons", "bank8FM", "mnistR", "omniglot"]
MAX_BYTES = 150_000


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
@pytest.mark.parametrize("name", DRAWN)
def test_draws_every_kind_of_set(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    path = tmp_path / "a.svg"
    tool.draw(name, path, folder=tmp_path, **SMALL.get(name, {}))
    assert path.read_text().count("<svg") == 1


def test_trancos_shows_cameras_and_densities_but_no_photographs(tmp_path: Path) -> None:
    MAKERS["trancos"](tmp_path)
    tool.draw("trancos", tmp_path / "a.svg", folder=tmp_path, size=(24, 32))
    text = (tmp_path / "a.svg").read_text()
    assert "distance of the mean masks" in text
    assert "vehicles" in text
    assert "<image" not in text


def test_same_set_gives_the_same_picture(tmp_path: Path) -> None:
    paths = [tmp_path / "0.svg", tmp_path / "1.svg"]
    for path in paths:
        tool.draw("synthetic", path, n_samples=40)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_single_feature_is_drawn_too() -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    points, owner = tool.embed({"a": (x, x[:, 0]), "b": (x, x[:, 0])}, 40)
    assert points.shape == (40, 2)
    assert owner.tolist() == [0] * 20 + [1] * 20


@pytest.mark.parametrize("name", NOISE)
def test_density_of_the_noise_is_one_in_all(name: str) -> None:
    grid = np.linspace(-40, 50, 20_001)
    assert np.trapezoid(tool.mixture_density(NOISE[name], grid), grid) == pytest.approx(1, abs=1e-3)


with_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are not here")


@with_pages
@pytest.mark.parametrize("name", DATASETS)
def test_every_set_has_a_page_with_a_small_picture(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\((img/[^)]+)\)", page)
    assert pictures
    for picture in pictures:
        assert 0 < (DOCS / picture).stat().st_size < MAX_BYTES
    assert f"vnt data show {name}" in page
    assert f"{name}.md" in (DOCS / "README.md").read_text(encoding="utf-8")
    for parameter in DATASETS[name].parameters:
        assert f"`{parameter}`" in page, f"{name}.md does not explain {parameter}"


def run_examples(page: str) -> None:
    """Run the python blocks of a page, one after another in one namespace."""
    shared: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, shared)


@with_pages
@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
@pytest.mark.parametrize("name", ["README", *DATASETS])
def test_examples_of_the_pages_run(name: str, real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in DATASETS and len(locate(DATASETS[name], real)) < len(DATASETS[name].files):
        pytest.skip(f"{name}: no files in ../shared/data")
    monkeypatch.setenv("VNT_DATA", str(real))
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    run_examples(page)
