"""The one folder format: the same values back, whole or not at all, nothing of others touched."""

import itertools
import json
import multiprocessing
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from helpers.saved import contents, edit
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage import locks
from vntransfer.storage.folder import load_folder, save_folder
from vntransfer.storage.record import SavedModel, pack, unpack

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("aä\n\"'")
KEYS = st.text("ab/_") | st.integers(-3, 3)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=6
)
NUMBERS = arrays.arrays(
    st.sampled_from([np.float32, np.float64, np.int64, np.bool_]),
    arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3),
)
LAID_OUT = NUMBERS | NUMBERS.map(np.transpose)  # in either order of memory
MODELS = st.recursive(
    st.builds(
        SavedModel,
        st.just("A"),
        st.dictionaries(st.text("xyz"), VALUES),
        st.dictionaries(st.sampled_from(["net/0", "offset", "0"]), LAID_OUT),
        st.dictionaries(st.sampled_from(["a.skops", "b.txt"]), st.binary(max_size=9)),
    ),
    lambda inner: st.builds(
        SavedModel, st.just("B"), parts=st.dictionaries(st.text("pq/"), inner), record=st.just({})
    ),
    max_leaves=4,
)


def same(one: SavedModel, two: SavedModel) -> None:
    assert (one.kind, one.record, one.files) == (two.kind, two.record, two.files)
    assert set(one.arrays) == set(two.arrays)
    for name, value in one.arrays.items():
        assert value.dtype == two.arrays[name].dtype
        np.testing.assert_array_equal(value, two.arrays[name])
    assert list(one.parts) == list(two.parts)
    for own, other in zip(one.parts.values(), two.parts.values(), strict=True):
        same(own, other)


@given(MODELS)
def test_what_is_saved_comes_back_with_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, model: SavedModel
) -> None:
    place = tmp_path_factory.mktemp("any")
    save_folder(place / "one", model)
    again = load_folder(place / "one")
    same(again, model)
    save_folder(place / "two", again)
    assert contents(place / "one") == contents(place / "two")


@given(VALUES)
def test_plain_values_survive_json(value: Any) -> None:
    assert unpack(json.loads(json.dumps(pack(value)))) == value


def example(number: int = 0) -> SavedModel:
    inner = SavedModel(
        "Inner", {"n": number}, {"x": np.full(1000, number)}, {"a.txt": b"%d" % number}
    )
    return SavedModel("Outer", {"n": number}, {"x": np.arange(3)}, parts={"inner": inner})


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    save_folder(tmp_path, example())
    for name, content in contents(tmp_path).items():
        for at in range(0, len(content), 1 + len(content) // 60):
            if content[at : at + 1].isspace():  # means nothing in a record
                continue
            damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(DataError, match=re.escape(str(tmp_path))):
                load_folder(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(DataError, match="is missing"):
            load_folder(tmp_path)
        (tmp_path / name).write_bytes(content)
    same(load_folder(tmp_path), example())


def test_edited_records_are_refused(tmp_path: Path) -> None:
    save_folder(tmp_path, example())
    edit(tmp_path, lambda content: content["record"].update(n=5), sign=False)
    with pytest.raises(DataError, match=r"model\.json was changed"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "format 99.*update vntransfer"),
        ({"format": 2}, "format 2.*fit and save the model again"),
        ({"format": "3"}, "not from a saved model"),
        ({"versions": {}}, "not from a saved model"),
        ({"arrays": "../../../../etc/passwd"}, r"model\.json"),
        ({"arrays": None, "files": {"a.txt": "/" * 64}}, r"model\.json"),
        ({"arrays": "0" * 64}, "is missing"),
        ({"parts": []}, r"model\.json"),
        ({"record": {"__pairs__": 3}}, r"model\.json"),
    ],
)
def test_forged_records_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    save_folder(tmp_path, example())
    edit(tmp_path, lambda content: content.update(change))
    with pytest.raises(DataError, match=message):
        load_folder(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\xff", "[" * 100_000])
def test_files_that_are_no_records_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"model\.json is"):
        load_folder(tmp_path)
    with pytest.raises(ArgumentError, match=r"holds 'model\.json', which is not part"):
        save_folder(tmp_path, example())


@pytest.mark.parametrize("name", ["thesis.txt", "part0/model.json", "deep/er/a", "d/", "model-1.x"])
def test_a_folder_with_other_things_is_left_alone(name: str, tmp_path: Path) -> None:
    place = tmp_path / "m"
    for older in (False, True):  # alone, or beside an older model
        if older:
            save_folder(place, example())
        foreign = place / name
        (foreign if name.endswith("/") else foreign.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            foreign.write_text("precious")
        before = contents(place)
        with pytest.raises(ArgumentError, match="which is not part of a vntransfer model"):
            save_folder(place, example(1))
        assert contents(place) == before
        if older:
            with pytest.raises(DataError, match="is not part of the model; remove it"):
                load_folder(place)
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def test_a_record_cannot_claim_files_of_others(tmp_path: Path) -> None:
    save_folder(tmp_path, example())
    (tmp_path / "thesis.txt").write_text("precious")
    edit(tmp_path, lambda content: content["files"].update({"thesis.txt": "0" * 64}))
    with pytest.raises(ArgumentError, match=r"holds 'thesis\.txt'"):
        save_folder(tmp_path, example(1))
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_an_older_model_is_replaced_as_a_whole(tmp_path: Path) -> None:
    save_folder(tmp_path / "m", example())
    save_folder(tmp_path / "m", example(1))
    save_folder(tmp_path / "new", example(1))
    assert contents(tmp_path / "m") == contents(tmp_path / "new")
    (tmp_path / "latest").symlink_to(tmp_path / "m", target_is_directory=True)
    save_folder(tmp_path / "latest", example(2))
    assert (tmp_path / "latest").is_symlink()
    same(load_folder(tmp_path / "m"), example(2))


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    unfit = SavedModel("Outer", {"n": object()}, {"x": np.arange(9)})
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_folder(tmp_path / "new", unfit)
    assert not (tmp_path / "new").exists()
    save_folder(tmp_path / "m", example())
    before = contents(tmp_path / "m")
    with pytest.raises(TypeError):
        save_folder(tmp_path / "m", unfit)
    half = SavedModel(
        "Outer", {"n": "\ud800"}, {"x": np.arange(9)}
    )  # fails when the record is written
    for place in ("m", "new"):
        with pytest.raises(UnicodeEncodeError):
            save_folder(tmp_path / place, half)
    assert contents(tmp_path / "m") == before
    assert not (tmp_path / "new").exists()


FORK = multiprocessing.get_context("fork")


def save_again_and_again(place: Path, start: int = 1, end: int | None = None) -> None:
    for number in itertools.count(start) if end is None else range(start, end):
        save_folder(place, example(number % 3))


def number_of(place: Path) -> int:
    """Load a model, all parts of which must be of the same save."""
    found = load_folder(place)
    number = int(found.record["n"])
    same(found, example(number))
    return number


def test_a_kill_at_any_moment_leaves_a_whole_model(tmp_path: Path) -> None:
    place = tmp_path / "m"
    save_folder(place, example())
    moments = np.random.default_rng().uniform(0, 0.03, 20)
    left = 0
    for seconds in moments:
        process = FORK.Process(target=save_again_and_again, args=(place,))
        process.start()
        time.sleep(seconds)
        process.kill()
        process.join()
        number_of(place)
        left += len(list(place.iterdir())) > 3
    save_folder(place, example(5))  # removes what killed processes left, at once
    save_folder(tmp_path / "new", example(5))
    assert contents(place) == contents(tmp_path / "new"), f"{left} of 20 kills left files"


def test_savers_and_readers_never_meet_half_a_model(tmp_path: Path) -> None:
    place = tmp_path / "m"
    save_folder(place, example())
    # few different models: the same files come and go
    savers = [FORK.Process(target=save_again_and_again, args=(place, k, k + 40)) for k in range(3)]
    for process in savers:
        process.start()
    seen = set()
    while any(process.is_alive() for process in savers):
        seen.add(number_of(place))
    assert [process.exitcode for process in savers] == [0, 0, 0]
    assert len(seen) > 1  # on a busy machine a reader may miss one of them
    assert seen <= {0, 1, 2}
    assert len(contents(place)) == 3


def test_a_saver_waits_for_another_and_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_folder(tmp_path, example())
    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    with locks.locked(tmp_path) as alone:
        assert alone
        with pytest.raises(DataError, match=f"{tmp_path}: another process"):
            save_folder(tmp_path, example(1))
        assert number_of(tmp_path) == 0  # readers do not wait
    save_folder(tmp_path, example(1))


def test_without_locks_only_old_files_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_take", lambda *given: False)
    save_folder(tmp_path, example())
    names = [".model.json.x1.tmp", f"model-{'0' * 16}.txt"]
    for name in names:
        (tmp_path / name).touch()
    save_folder(tmp_path, example(1))  # another process may still be writing them
    assert {*names} <= {*contents(tmp_path)}
    for name in names:
        os.utime(tmp_path / name, (0, 0))
    save_folder(tmp_path, example(2))
    assert len(contents(tmp_path)) == 3


def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"table\.csv: is a file"):
        load_folder(table)
    with pytest.raises(DataError, match=r"model\.json is missing"):
        load_folder(table / "inside")


def test_a_killed_first_save_can_be_repeated(tmp_path: Path) -> None:
    save_folder(tmp_path, example())
    (tmp_path / "model.json").unlink()
    (tmp_path / ".model.json.x1y2.tmp").write_text("{")
    with pytest.raises(DataError, match=r"model\.json is missing"):
        load_folder(tmp_path)
    save_folder(tmp_path, example(3))
    assert number_of(tmp_path) == 3
