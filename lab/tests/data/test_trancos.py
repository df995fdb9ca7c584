"""TRANCOS: densities that add up, cameras, both layouts, pictures on access."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab_helpers.makers import folder, make_trancos, tar, trancos_files, zipped
from vntransfer.errors import ArgumentError, DataError
from vntransfer_lab.data import Domains, load, trancos
from vntransfer_lab.data.pictures import LazyRows
from vntransfer_lab.data.trancos import (
    camera_domains,
    density_map,
    group_cameras,
    masked_count,
)

FULL = (48, 64)
dot = st.tuples(st.floats(0, FULL[1] - 1), st.floats(0, FULL[0] - 1))
sides = st.integers(8, 50)


def domains(root: Path, **parameters: object) -> Domains:
    loaded = load("trancos", folder=root, **parameters)
    assert isinstance(loaded, Domains)
    return loaded


@given(st.lists(dot, max_size=12), sides, sides, st.floats(1e-3, 30))
def test_density_adds_up_to_the_count_at_any_size(
    dots: list[tuple[float, float]], height: int, width: int, sigma: float
) -> None:
    points = np.array(dots).reshape(-1, 2)
    whole = density_map(points, (height, width), full=FULL, sigma=sigma)
    assert whole.shape == (height, width)
    assert whole.min() >= 0
    assert float(whole.sum(dtype=np.float64)) == pytest.approx(len(dots), rel=1e-4, abs=1e-6)


@given(st.lists(dot, min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_masked_count_is_the_sum_of_the_masked_map(
    dots: list[tuple[float, float]], seed: int
) -> None:
    mask = np.random.default_rng(seed).random(FULL) < 0.5
    points = np.array(dots)
    whole = density_map(points, FULL, full=FULL, sigma=4)
    expected = float((whole * mask).sum(dtype=np.float64))
    assert masked_count(points, mask, full=FULL, sigma=4) == pytest.approx(expected, rel=1e-4)


def test_density_is_scipy_s_filter_away_from_the_border() -> None:
    from scipy.ndimage import gaussian_filter

    image = np.zeros(FULL)
    image[20, 30] = 1
    ours = density_map(np.array([[30.0, 20.0]]), FULL, full=FULL, sigma=2)
    np.testing.assert_allclose(ours, gaussian_filter(image, 2, truncate=8), atol=1e-7)


def test_dots_outside_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(64, 3\).* 64 x 48"):
        density_map(np.array([[5.0, 5], [64, 3]]), FULL, full=FULL)


def test_groups_find_separate_cameras() -> None:
    rng = np.random.default_rng(0)
    base = rng.random((4, 20, 20)) < 0.3
    masks = np.repeat(base, 5, axis=0) ^ (rng.random((20, 20, 20)) < 0.01)
    groups = group_cameras(masks)
    assert groups.tolist() == np.repeat(np.arange(4), 5).tolist()
    assert group_cameras(masks[:1]).tolist() == [0]


def test_domains_of_cameras_do_not_depend_on_the_order_of_pictures() -> None:
    rng = np.random.default_rng(1)
    camera = rng.integers(0, 8, 60)
    masks = (rng.random((8, 6, 8)) < 0.5)[camera]
    order = rng.permutation(60)
    one, other = camera_domains(masks, camera, 3), camera_domains(masks[order], camera[order], 3)
    assert one.domain.tolist() == other.domain.tolist()
    sizes = np.bincount(one.domain, weights=one.sizes)
    assert (np.diff(sizes) <= 0).all(), "the largest domain comes first"
    with pytest.raises(ArgumentError, match=r"n_domains: .* 2 to 8"):
        camera_domains(masks, camera, 9)


@pytest.mark.parametrize(
    ("name", "write"),
    [("TRANCOS_v3.tar.gz", tar), ("TRANCOS_v3", folder), ("TRANCOS_v3.tar.gz", zipped)],
)
def test_official_layout(
    name: str, write: Callable[[Path, dict[str, bytes]], None], tmp_path: Path
) -> None:
    write(tmp_path / "trancos" / name, trancos_files())
    loaded = domains(tmp_path)
    assert "6 groups of pictures" in loaded.provenance.built[0]
    assert sum(len(y) for _, y in loaded.values()) == 18
    for domain, (x, y) in loaded.items():
        assert x.shape == (len(y), 480, 640, 3)
        assert x[0].dtype == np.uint8
        density, mask = loaded.extras["density"][domain], loaded.extras["mask"][domain]
        assert float(density[0][mask[0]].sum()) == pytest.approx(y[0], rel=1e-4, abs=1e-5)
        assert mask[0].shape == density[0].shape == (480, 640)
        assert set(loaded.extras["split"][domain]) <= {"training", "validation", "test"}


def test_size_and_masked_counts(tmp_path: Path) -> None:
    tar(tmp_path / "trancos" / "TRANCOS_v3.tar.gz", trancos_files())
    loaded = domains(tmp_path, size=(48, 64))
    for domain, (x, y) in loaded.items():
        maps = np.asarray(loaded.extras["density"][domain])
        masks = np.asarray(loaded.extras["mask"][domain])
        np.testing.assert_allclose((maps * masks).sum(axis=(1, 2)), y, rtol=1e-4, atol=1e-6)
        assert x[:2].shape == (2, 48, 64, 3)
    for size in (48, (48,), (0, 64), "big", (48.5, 64)):
        with pytest.raises(ArgumentError, match="size"):
            domains(tmp_path, size=size)


def test_measures_are_remembered_per_file_and_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_CACHE", str(tmp_path / "derived"))
    make_trancos(tmp_path)
    first = domains(tmp_path, size=(48, 64))
    other = domains(tmp_path, size=(24, 32))
    assert any((first[d][1] != other[d][1]).any() for d in first)
    monkeypatch.setattr(trancos, "masked_count", None)
    monkeypatch.setattr(trancos, "area_resize", None)
    again = domains(tmp_path, size=(48, 64))
    for domain in first:
        np.testing.assert_array_equal(again[domain][1], first[domain][1])


def test_incomplete_archives_are_named(tmp_path: Path) -> None:
    files = trancos_files()
    base = tmp_path / "trancos" / "TRANCOS_v3"
    folder(base, files)
    dots = base / "TRANCOS_v3" / "images" / "image-1-000004.txt"
    dots.write_text("12 three\n")
    with pytest.raises(DataError, match=r"image-1-000004\.txt: damaged list"):
        domains(tmp_path)
    dots.unlink()
    with pytest.raises(DataError, match=r"no image-1-000004\.txt"):
        domains(tmp_path)
    for listing in base.rglob("image_sets/*.txt"):
        listing.unlink()
    with pytest.raises(DataError, match="no image_sets"):
        domains(tmp_path)


def test_lazy_rows_index_like_an_array() -> None:
    whole = np.arange(24).reshape(6, 4)
    rows = LazyRows(range(6), (4,), whole.dtype, lambda i: whole[i])
    for index in (2, -1, slice(1, 5, 2), [4, 0], np.array([True, False] * 3)):
        np.testing.assert_array_equal(rows[index], whole[index])
    np.testing.assert_array_equal(np.asarray(rows), whole)
    assert np.asarray(rows, dtype=np.float32).dtype == np.float32
    assert [row.tolist() for row in rows] == whole.tolist()
    with pytest.raises(IndexError):
        rows[6]


def test_genuine_domains(real: Path) -> None:
    loaded = domains(real, size=(120, 160))
    sizes = {domain: len(y) for domain, (_, y) in loaded.items()}
    assert sizes == {"dom1": 363, "dom2": 280, "dom3": 274, "dom4": 252, "dom5": 75}
    counts = np.concatenate(list(loaded.extras["split"].values()))
    assert {s: int((counts == s).sum()) for s in ("training", "validation", "test")} == {
        "training": 403,
        "validation": 420,
        "test": 421,
    }
    total = 0.0
    for domain, (_, y) in loaded.items():
        density = loaded.extras["density"][domain]
        dots = np.array([row.sum(dtype=np.float64) for row in density])
        np.testing.assert_allclose(dots, dots.round(), rtol=1e-4)
        assert (y <= dots + 1e-3).all()
        total += dots.round().sum()
    assert total == 46750
