"""Tables: regression sets and their noise, UCI sets, songs, CT slices, landmines, grouping."""

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab_helpers.makers import MAKERS, csv, ct_csv, folder, landmine_mat, tar, year_rows
from vntransfer.errors import ArgumentError, DataError, DataWarning
from vntransfer_lab.data import Domains, load, tabular
from vntransfer_lab.data.families import Shift, load_families
from vntransfer_lab.data.regression import NOISE, NoiseMixture, mixture_noise, two_d_planes
from vntransfer_lab.data.synthetic import covariance_matrix, load_synthetic
from vntransfer_lab.data.tabular import kmeans_domains, quantile_domains, random_groups

GOLDEN_SYNTHETIC = "1dc2443f45e480df0588b44a5ba99051b69687afce950a549125ce71aa5d788b"
GOLDEN_PLANES = "306794c9607e078fb484791f4b4b78673e435f49e2ff25f0e957ca3170dde6ae"
GOLDEN_NOISE = "14184908c2b25b6677df212c839841d211b942344b4efdf9c17a5ab3c551c45c"


def rounded(*arrays: np.ndarray) -> str:
    """Hash of numbers to six digits: what a matrix product does in the last bits does not count."""
    content = b"".join((np.round(a, 6) + 0.0).astype("<f8").tobytes() for a in arrays)
    return hashlib.sha256(content).hexdigest()


def domains(name: str, root: Path, **parameters: object) -> Domains:
    loaded = load(name, folder=root, **parameters)
    assert isinstance(loaded, Domains)
    return loaded


def test_generated_sets_are_golden() -> None:
    parts = [a for pair in load_synthetic({}, n_samples=50, seed=3).values() for a in pair]
    assert rounded(*parts) == GOLDEN_SYNTHETIC
    assert rounded(*two_d_planes(200, seed=3)) == GOLDEN_PLANES
    assert rounded(*(mixture_noise(name, 50, seed=3) for name in NOISE)) == GOLDEN_NOISE


def test_synthetic_moments_are_those_asked_for() -> None:
    x, _ = load_synthetic({}, n_samples=20_000, seed=1)["s4"]
    np.testing.assert_allclose(x.mean(axis=0), -1 + 6 / 5, atol=0.04)
    np.testing.assert_allclose(np.cov(x.T), covariance_matrix(4), atol=0.05)


def test_worlds_differ_in_what_their_name_says() -> None:
    def slopes(shift: Shift, name: str) -> np.ndarray:
        x, y = load_families({}, shift=shift, n_samples=20_000, seed=4)[name]
        return np.linalg.lstsq(np.column_stack((x, np.ones(len(x)))), y, rcond=None)[0][:-1]

    worlds = load_families({}, shift="covariate", n_samples=3000, seed=4)
    (x, y), (other, response) = worlds["w1"], worlds["w2"]
    assert np.abs(x.mean(0) - other.mean(0)).max() > 0.5
    near = ((x[:, None] - other[None, :500]) ** 2).sum(2)
    pairs = np.unravel_index(np.argsort(near, axis=None)[:20], near.shape)
    assert np.abs(y[pairs[0]] - response[pairs[1]]).mean() < 0.5  # one relation
    same, apart = (
        np.linalg.norm(slopes("relation", "w1") - slopes("relation", w)) for w in ("w3", "w2")
    )
    assert apart > 2 * same
    with pytest.raises(ArgumentError, match="shift: expected one of"):
        load_families({}, shift="sideways")  # type: ignore[arg-type]


def test_tables_can_be_cut_into_domains(tmp_path: Path) -> None:
    MAKERS["bank8FM"](tmp_path)
    whole, cut = (domains("bank8FM", tmp_path, **asked) for asked in ({}, {"k": 3, "seed": 1}))
    assert list(whole) == ["bank8FM"]
    assert list(cut) == ["dom1", "dom2", "dom3"]
    assert sum(len(y) for _, y in cut.values()) == len(whole["bank8FM"][1])
    assert "3 domains by k-means" in cut.provenance.describe()


def test_planes_follow_the_formula_of_the_genuine_file(real: Path) -> None:
    x, y = domains("2dplanes", real)["2dplanes"]
    made, response = two_d_planes(seed=5)
    assert made.shape == x.shape
    assert y.mean() == pytest.approx(response.mean(), abs=0.1)
    assert y.std() == pytest.approx(response.std(), rel=0.02)
    for column in range(10):
        np.testing.assert_array_equal(np.unique(x[:, column]), np.unique(made[:, column]))
    up = 3 + 3 * x[:, 1] + 2 * x[:, 2] + x[:, 3]
    down = -3 + 3 * x[:, 4] + 2 * x[:, 5] + x[:, 6]
    assert (y - np.where(x[:, 0] == 1, up, down)).std() == pytest.approx(1, abs=0.02)
    again = domains("2dplanes", real, generated=True, n_samples=7)
    assert again["2dplanes"][0].shape == (7, 10)


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("spread", ["std", "variance"])
def test_noise_has_the_moments_of_its_mixture(name: str, spread: str) -> None:
    mixture = NOISE[name]
    weights = np.array(mixture.weights) / sum(mixture.weights)
    means, spreads = np.array(mixture.means), np.array(mixture.spreads)
    variances = spreads**2 if spread == "std" else spreads
    mean = weights @ means
    deviation = np.sqrt(weights @ (variances + means**2) - mean**2)
    noise = mixture_noise(name, 200_000, 3.0, spread=spread)
    assert noise.mean() == pytest.approx(3 * mean, rel=0.02)
    assert noise.std() == pytest.approx(3 * deviation, rel=0.02)


def test_noise_of_one_s_own_and_wrong_arguments() -> None:
    own = mixture_noise(NoiseMixture((1.0,), (5.0,), (0.0,)), 3, 2.0)
    assert own.tolist() == [10, 10, 10]
    for arguments in (("wine", 3), ("puma8NH", 0)):
        with pytest.raises(ArgumentError):
            mixture_noise(*arguments)


def test_official_regression_archive_keeps_training_and_test_rows(tmp_path: Path) -> None:
    MAKERS["bank8FM"](tmp_path)
    x, y = domains("bank8FM", tmp_path)["bank8FM"]
    rows = np.random.default_rng(8).normal(size=(30, 9)).round(3)
    np.testing.assert_allclose(np.column_stack([x, y]), rows)


@pytest.mark.parametrize("content", [b"1,2,x\n", b"1,2\n3,4\n", b"1,2\n3\n", b"\xff\n"])
def test_damaged_regression_files_are_named(content: bytes, tmp_path: Path) -> None:
    tar(tmp_path / "regression" / "puma8NH.tgz", {"P/puma8NH.data": content})
    with pytest.raises(DataError, match=r"puma8NH\.tgz"):
        load("puma8NH", folder=tmp_path)


def test_bike_drops_the_columns_that_tell_y(real: Path) -> None:
    loaded = domains("bike", real)
    assert len(loaded.feature_names) == 13
    assert not {"x4", "x5", "x15", "x16"} & set(loaded.feature_names)
    assert "dropped" in loaded.provenance.built[1]


def test_parkinsons_keeps_subjects_whole(real: Path) -> None:
    loaded = domains("parkinsons", real, seed=4)
    assert "42 subjects" in loaded.provenance.built[0]
    assert "x0" not in loaded.feature_names
    assert min(len(y) for _, y in loaded.values()) > 900
    assert any(
        len(a[1]) != len(b[1])
        for a, b in zip(loaded.values(), domains("parkinsons", real, seed=5).values(), strict=True)
    )


@given(st.integers(1, 6), st.integers(0, 99), st.integers(6, 40))
def test_random_groups_keep_subjects_whole_and_even(k: int, seed: int, n_subjects: int) -> None:
    subjects = np.random.default_rng(seed).permutation(np.arange(3 * n_subjects) % n_subjects)
    groups = random_groups(subjects, k, seed=seed)
    owner = {}
    for subject, group in zip(subjects, groups, strict=True):
        assert owner.setdefault(subject, group) == group
    sizes = np.bincount(list(owner.values()), minlength=k)
    assert sizes.max() - sizes.min() <= 1


def test_cuts_at_quantiles_are_ordered_and_of_equal_size() -> None:
    X = np.random.default_rng(0).standard_normal((70, 3))
    owner = quantile_domains(X, 7, 2)
    assert np.bincount(owner).tolist() == [10] * 7
    np.testing.assert_array_equal(np.sort(owner), owner[np.argsort(X[:, 2])])
    with pytest.raises(ArgumentError, match="cut"):
        quantile_domains(X, 7, 3)


def test_kmeans_finds_separate_blobs_largest_first() -> None:
    rng = np.random.default_rng(0)
    center = np.repeat(np.arange(3), [60, 25, 15])
    X = np.column_stack([10.0 * center + rng.normal(size=100), 1e6 * rng.normal(size=100)])
    labels = kmeans_domains(X, 3, columns=1, seed=1)
    np.testing.assert_array_equal(labels, center)
    np.testing.assert_array_equal(kmeans_domains(X, 3, columns=1, n_fit=99), center)
    for wrong in (
        {"k": 0},
        {"k": 101},
        {"columns": 3},
        {"columns": 0},
        {"columns": -1},
        {"columns": "ab"},
    ):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            kmeans_domains(X, **({"k": 3} | wrong))


def test_constant_columns_do_no_harm() -> None:
    X = np.column_stack([np.ones(10), np.arange(10.0) // 5])
    assert np.bincount(kmeans_domains(X, 2)).tolist() == [5, 5]


def test_songs_keep_the_official_split_and_fit_on_training_rows(tmp_path: Path) -> None:
    rows = year_rows(300)
    folder(tmp_path, {"YearPredictionMSD.txt": csv(rows)})
    loaded = domains("yearpredictionmsd", tmp_path)
    n_train = int(300 * 463_715 / 515_345)
    test = loaded.extras["test"]
    assert sum(len(y) for _, y in loaded.values()) == n_train
    assert sum(len(y) for _, y in test.values()) == 300 - n_train
    years = np.sort(np.concatenate([y for _, y in loaded.values()]))
    np.testing.assert_array_equal(years, np.sort(rows[:n_train, 0]))
    folder(tmp_path, {"YearPredictionMSD.txt": csv(np.vstack([rows[:n_train], rows[:40]]))})
    changed = domains("yearpredictionmsd", tmp_path)
    assert sum(len(y) for _, y in changed.values()) != n_train  # the share moved with the length


def test_clusters_of_a_file_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNT_CACHE", str(tmp_path / "derived"))
    folder(tmp_path, {"YearPredictionMSD.txt": csv(year_rows(300))})
    first = domains("yearpredictionmsd", tmp_path)
    monkeypatch.setattr(tabular, "kmeans_domains", None)
    again = domains("yearpredictionmsd", tmp_path, columns=30)
    for domain, (x, _) in first.items():
        np.testing.assert_array_equal(again[domain][0], x)
    for other in ({"k": 4}, {"seed": 1}, {"columns": 29}):
        with pytest.raises(TypeError):
            domains("yearpredictionmsd", tmp_path, **other)
    (kept,) = (tmp_path / "derived" / "clusters").iterdir()
    kept.write_bytes(kept.read_bytes()[:50])
    with pytest.raises(TypeError):
        domains("yearpredictionmsd", tmp_path)


def test_damaged_song_is_named(tmp_path: Path) -> None:
    content = csv(year_rows(5)).replace(b"\n", b",7\n", 1)
    folder(tmp_path, {"YearPredictionMSD.txt": content})
    with pytest.raises(DataError, match=r"YearPredictionMSD\.txt: damaged"):
        load("yearpredictionmsd", folder=tmp_path)


def test_small_songs_are_the_random_rows(real: Path) -> None:
    loaded = domains("yearpred-small", real)
    years = np.concatenate([y for _, y in loaded.values()])
    assert len(years) == 7000
    assert len(loaded.feature_names) == 90
    means = [x[:, 0].mean() for x, _ in loaded.values()]
    assert np.ptp(means) > 5, "domains differ in loudness"


def test_ct_slices_group_whole_patients(tmp_path: Path) -> None:
    folder(tmp_path / "ct_slices", {"slice_localization_data.csv": ct_csv()})
    loaded = domains("ct_slices", tmp_path, k=3)
    patients = [set(p) for p in loaded.extras["patient"].values()]
    assert sum(map(len, patients)) == len(set.union(*patients)) == 11
    assert all(x.shape[1] == 384 for x, _ in loaded.values())
    assert max(y.max() for _, y in loaded.values()) <= 180


@pytest.mark.filterwarnings("ignore:.*unknown hash")
def test_whole_ct_slices_come_before_the_partial_ones(tmp_path: Path) -> None:
    box = io.BytesIO()
    np.savez(box, X=np.zeros((10, 384)), y=np.zeros(10), patient=np.arange(10))
    folder(tmp_path / "ct_slices", {"ct_slices_partial.npz": box.getvalue()})
    with pytest.warns(DataWarning, match=r"ct_slices_partial\.npz contains"):
        assert sum(len(y) for _, y in domains("ct_slices", tmp_path).values()) == 10
    folder(tmp_path / "ct_slices", {"slice_localization_data.csv": ct_csv()})
    assert sum(len(y) for _, y in domains("ct_slices", tmp_path).values()) == 60


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_landmine_has_two_kinds_of_terrain(tmp_path: Path) -> None:
    folder(tmp_path / "landmine", {"LandmineData.mat": landmine_mat()})
    loaded = domains("landmine", tmp_path)
    assert len(loaded) == 29
    kinds = list(loaded.extras["terrain"].values())
    assert kinds == ["foliated"] * 15 + ["bare"] * 14
    folder(tmp_path / "landmine", {"LandmineData.mat": b"nothing"})
    with pytest.raises(DataError, match=r"damaged \.mat file"):
        load("landmine", folder=tmp_path)
    tar(tmp_path / "landmine" / "LandmineData.zip", {"read.me": b""})
    with pytest.raises(DataError, match=r"holds no \.mat"):
        load("landmine", folder=tmp_path)


def test_landmine_has_its_published_size(real: Path) -> None:
    loaded = domains("landmine", real)
    assert sum(len(y) for _, y in loaded.values()) == 14820
    assert {float(v) for _, y in loaded.values() for v in np.unique(y)} == {0, 1}
