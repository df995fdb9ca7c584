"""Streams of pictures: maps, golden hashes, separate seeds, damaged files."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab_helpers.hashes import digest
from lab_helpers.makers import MAKERS, folder, idx, notmnist_files, omniglot_files, png, tar
from vntransfer.errors import ArgumentError, DataError
from vntransfer_lab.data import TaskStream, load
from vntransfer_lab.data.picture_sets import read_idx, read_notmnist
from vntransfer_lab.data.streams import apply_map, permutation_map, rotation_map

GOLDEN_TINY = {
    "mnistP": "5adeabe8e6c8ba59827f8a9ac044c26b9d61dcd754e5249a03a479e923324852",
    "mnistR": "5b58ae3a0da74aba8493d5dbb72510b51d5de59d9e716c0d5d3c986b9ab7db56",
    "fashionP": "5adeabe8e6c8ba59827f8a9ac044c26b9d61dcd754e5249a03a479e923324852",
    "notmnistP": "70635e65c9567c796c180feb23aa2cd97a4f87299735f8a13ea4471cefd7e67e",
    "omniglot": "7110059c77645f224e4e9f78f094ca5566b4140915a107eff27054c68ab5add9",
}
GOLDEN = {
    "mnistP": "2f218f2614ed1b758cc1b991106adefe1bfc28d802b1515feeba218b9fa41fce",
    "mnistR": "e0a168e54dca57c7c9c7f83ab34cbc944874467b395754f003f2e9c3cf21b735",
    "fashionP": "aff826e8c248350d91c59aa49c23e367bf226f1b363b2dc64ce885523585eec7",
    "notmnistP": "527363e6d3c02eebc7ffe3188a109e99bf2956a6d2421a9d97941582f5a2ead7",
    "omniglot": "a060704ba804bc4e2a23f0c54abd29d8f4ae2a9245aac9c75038914991879fa2",
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tiny")
    for name in ("mnistP", "fashionP", "notmnistP", "omniglot"):
        MAKERS[name](root)
    return root


def stream(name: str, root: Path, **parameters: object) -> TaskStream:
    loaded = load(name, folder=root, **parameters)
    assert isinstance(loaded, TaskStream)
    return loaded


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
@pytest.mark.parametrize("name", GOLDEN_TINY)
def test_stream_of_made_pictures_is_golden(name: str, tiny: Path) -> None:
    sizes = {"n_tasks": 2} if name == "omniglot" else {"n_tasks": 3, "n_train": 20, "n_test": 30}
    assert digest(stream(name, tiny, **sizes)) == GOLDEN_TINY[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_stream_is_golden(name: str, real: Path) -> None:
    sizes = {"n_tasks": 2} if name == "omniglot" else {"n_tasks": 2, "n_test": 200}
    assert digest(stream(name, real, **sizes)) == GOLDEN[name]


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_seed_changes_the_stream_and_tasks_are_made_anew_alike(tiny: Path) -> None:
    first, other = (stream("mnistP", tiny, n_train=20, n_test=10, seed=s) for s in (0, 1))
    np.testing.assert_array_equal(first[2].x, first[2].x)
    assert not np.array_equal(first[0].x, other[0].x)
    assert not np.array_equal(first.extras["maps"][0], first.extras["maps"][1])
    assert digest(stream("mnistP", tiny, n_tasks=3, n_train=20, n_test=10)) == digest(
        replace(first, n_tasks=3)
    ), "a task does not depend on how many follow"


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_held_out_stream_shows_no_test_picture(tiny: Path) -> None:
    base = tiny / "mnist"
    test = read_idx(base / "t10k-images-idx3-ubyte.gz").reshape(-1, 784)
    train = read_idx(base / "train-images-idx3-ubyte.gz").reshape(-1, 784)
    held = stream("mnistP", tiny, n_train=20, held_out=True)
    assert len(held[0].x_test) == 20
    back = np.argsort(held.extras["maps"][0])
    seen = {row.tobytes() for row in (held[0].x_test[:, back] * 255).round().astype(np.uint8)}
    assert seen <= {row.tobytes() for row in train[100:]}
    assert not seen & {row.tobytes() for row in test}


def test_permutation_only_moves_pixels() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    pixels = permutation_map(3, 28, seed=7)
    moved = apply_map(pictures, pixels)
    np.testing.assert_allclose(
        moved[:, np.argsort(pixels)], pictures.reshape(5, -1) / np.float32(255)
    )


@pytest.mark.parametrize("turns", range(5))
def test_right_angles_agree_with_numpy(turns: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (1, 9, 9), dtype=np.uint8)
    moved = apply_map(picture, rotation_map(90.0 * turns, 9)).reshape(9, 9)
    np.testing.assert_array_equal(moved, np.rot90(picture[0], turns) / np.float32(255))


def test_rotation_agrees_with_pillow_up_to_the_rim_of_pixels() -> None:
    from PIL import Image

    picture = np.kron(np.random.default_rng(0).integers(0, 2, (7, 7)), np.ones((4, 4))) * 255
    picture = picture.astype(np.uint8)
    ours = apply_map(picture[None], rotation_map(37.0, 28)).reshape(28, 28)
    theirs = np.asarray(Image.fromarray(picture).rotate(37.0)) / 255
    assert np.mean(ours != theirs.astype(np.float32)) < 0.02


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_angles_cover_the_range_in_order(tiny: Path) -> None:
    for most in (90.0, 180.0):
        angles = stream("mnistR", tiny, n_train=20, max_angle=most).extras["angles"]
        for t, angle in enumerate(angles):
            assert most / 10 * t <= angle <= most / 10 * (t + 1)


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_a_split_stream_deals_every_class_to_one_task(tiny: Path) -> None:
    dealt = stream("mnistS", tiny, n_train=10, n_test=4)
    parts = dealt.extras["classes"]
    assert sorted(np.ravel(parts)) == list(range(10))
    assert dealt.head_sizes == (2,) * 5
    base = tiny / "mnist"
    pictures = read_idx(base / "train-images-idx3-ubyte.gz").reshape(-1, 784)
    labels = read_idx(base / "train-labels-idx1-ubyte.gz")
    of = {row.tobytes(): int(label) for row, label in zip(pictures, labels, strict=True)}
    for task, part in zip(dealt, parts, strict=True):
        rows = (task.x * 255).round().astype(np.uint8)
        assert [of[row.tobytes()] for row in rows] == [part[label] for label in task.y]
        assert len(task.y_test) == 4
    other = stream("mnistS", tiny, n_train=10, n_test=4, seed=1)
    assert other.extras["classes"] != parts
    with pytest.raises(ArgumentError, match=r"n_tasks: .* 1, 2, 5"):
        stream("mnistS", tiny, n_tasks=3)
    with pytest.raises(ArgumentError, match="n_train: "):
        stream("mnistS", tiny, n_train=100)


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_too_many_rows_are_refused(tiny: Path) -> None:
    with pytest.raises(ArgumentError, match=r"n_train: .* 2 to 120"):
        stream("mnistP", tiny, n_train=121)
    with pytest.raises(ArgumentError, match=r"n_test: .* 2 to 40"):
        stream("mnistP", tiny, n_train=20, n_test=41)
    with pytest.raises(ArgumentError, match="max_angle"):
        stream("mnistR", tiny, max_angle=0)


def test_damaged_idx_files_are_named(tmp_path: Path) -> None:
    whole = idx(np.arange(12, dtype=np.uint8).reshape(3, 4))
    for content, why in (
        (whole[:-1], "12 bytes, but 11 follow"),
        (whole + b"!", "but 13 follow"),
        (b"\0\0\x0d\1", "not an idx file"),
        (b"", "not an idx file"),
        (gzip.compress(whole)[:-9], "damaged file"),
    ):
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(DataError, match=why):
            read_idx(path)
    path.write_bytes(gzip.compress(whole))
    assert read_idx(path).shape == (3, 4)


def test_notmnist_drops_repeats_and_reads_archive_and_folder_alike(tmp_path: Path) -> None:
    files = notmnist_files()
    tar(tmp_path / "a.tar.gz", dict(reversed(files.items())))
    folder(tmp_path / "b", files)
    first, second = read_notmnist(tmp_path / "a.tar.gz"), read_notmnist(tmp_path / "b")
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    pictures = np.concatenate([first[0], first[2]])
    assert len(pictures) == len(np.unique(pictures, axis=0)) == 120


def test_notmnist_refuses_many_damaged_pictures(tmp_path: Path) -> None:
    files = notmnist_files() | {"notMNIST_small/D/x.png": b"bad"}
    folder(tmp_path / "b", files)
    with pytest.raises(DataError, match="3 damaged"):
        read_notmnist(tmp_path / "b")


def test_notmnist_has_18232_distinct_pictures(real: Path) -> None:
    train, _, test, labels = read_notmnist(real / "notmnist" / "notmnist_small.npz")
    assert (len(train), len(test)) == (8232, 10_000)
    assert np.bincount(labels).min() > 800, "shuffled: every letter is in the test part"


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_omniglot_splits_every_character(tmp_path: Path) -> None:
    folder(tmp_path / "omniglot", omniglot_files())
    tasks = stream("omniglot", tmp_path, n_tasks=2, size=21)
    assert tasks.head_sizes == (3, 2)
    assert tasks.extras["alphabets"] == ("Alpha", "Beta"), "in the order of names"
    for task, head in zip(tasks, tasks.head_sizes, strict=True):
        assert task.x.shape == (15 * head, 1, 21, 21)
        assert (np.bincount(task.y) == 15).all()
        assert (np.bincount(task.y_test) == 5).all()
        rows = np.concatenate([task.x, task.x_test]).reshape(20 * head, -1)
        assert len(np.unique(rows, axis=0)) == 20 * head


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_omniglot_holds_the_last_alphabets_out(tmp_path: Path) -> None:
    folder(tmp_path / "omniglot", omniglot_files())
    both = stream("omniglot", tmp_path, n_tasks=2)
    last = stream("omniglot", tmp_path, n_tasks=1, held_out=True)
    assert (last.head_sizes, last.extras["alphabets"]) == ((2,), ("Beta",))
    assert np.array_equal(last[0].x, both[1].x)
    with pytest.raises(ArgumentError, match=r"n_tasks: .* 1 to 1, got 2"):
        stream("omniglot", tmp_path, n_tasks=2, held_out=True)


def test_omniglot_has_the_published_sizes(real: Path) -> None:
    tasks = stream("omniglot", real)
    assert tasks.head_sizes == (20, 29, 26, 41, 40, 24, 46, 14, 26, 34)
    full = stream("omniglot", real, n_tasks=1, size=105)[0]
    assert set(np.unique(full.x)) == {0, 1}
    with pytest.raises(ArgumentError, match=r"n_train: .* 1 to 19"):
        stream("omniglot", real, n_train=20)


def test_odd_png_names_are_refused(tmp_path: Path) -> None:
    picture = png(np.zeros((105, 105), dtype=np.uint8))
    folder(tmp_path / "omniglot" / "images_background", {"what.png": picture})
    with pytest.raises(DataError, match="unexpected file"):
        load("omniglot", folder=tmp_path)
