"""Amazon reviews: official layouts, repeats, intervals, tf-idf."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab_helpers.makers import folder, make_amazon, make_amazon7i, review, tar, unprocessed_files
from vntransfer.errors import ArgumentError, DataError
from vntransfer_lab.data import Domains, load
from vntransfer_lab.data.amazon import (
    SEVEN,
    Review,
    drop_repeats,
    parse_unprocessed,
    read_compact_stars,
    read_intervals,
    read_official,
    tf_idf,
)

stars = st.integers(1, 5)
interval = st.tuples(stars, stars).map(sorted)


def domains(root: Path, name: str = "amazon", **parameters: object) -> Domains:
    loaded = load(name, folder=root, **parameters)
    assert isinstance(loaded, Domains)
    return loaded


def test_seven_or_all_domains_with_seven_targets(tmp_path: Path) -> None:
    make_amazon(tmp_path)
    few, many = domains(tmp_path), domains(tmp_path, sources="all")
    assert tuple(few) == few.targets == many.targets == SEVEN
    assert len(many) == 25
    assert all(len(y) == 8 for _, y in many.values()), "one exact repeat removed, unlabeled unread"
    assert Counter(many["camera_photo"][1]) == {1: 2, 2: 2, 4: 2, 5: 2}


def test_archive_and_unpacked_folder_give_the_same(tmp_path: Path) -> None:
    files = unprocessed_files()
    tar(tmp_path / "a" / "unprocessed.tar.gz", files)
    folder(tmp_path / "b", files)
    one, other = (read_official(tmp_path / p) for p in ("a/unprocessed.tar.gz", "b/sorted_data"))
    assert sorted(map(repr, one)) == sorted(map(repr, other))


def test_domains_that_are_lacking_are_named(tmp_path: Path) -> None:
    tar(tmp_path / "amazon" / "unprocessed.tar.gz", unprocessed_files(["books", "dvd"]))
    with pytest.raises(DataError, match="sources='all' for the 2 domains"):
        domains(tmp_path)
    assert list(domains(tmp_path, sources="all")) == ["books", "dvd"]


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
def test_intervals_of_repeats_are_intersected(tmp_path: Path) -> None:
    make_amazon7i(tmp_path)
    loaded = domains(tmp_path, "amazon7i")
    _, y = loaded["baby"]
    assert y.tolist() == [4.5, 1.0, 3.0]  # [4, 5], [1, 1], [2, 5] and [1, 4]
    assert loaded.extras["star_interval"]["baby"].tolist() == [[4, 5], [1, 1], [2, 4]]


def test_errors_in_units_of_standard_deviation(tmp_path: Path) -> None:
    make_amazon(tmp_path)
    loaded = domains(tmp_path)
    y = np.concatenate([y for _, y in loaded.values()])
    assert loaded.extras["response_std"] == pytest.approx(y.std())


@given(interval, interval)
def test_two_intervals_become_one_exactly_if_they_overlap(
    a: tuple[float, float], b: tuple[float, float]
) -> None:
    kept = drop_repeats([Review("d", "t", *a), Review("d", "t", *b), Review("e", "t", *a)])
    overlap = max(a[0], b[0]) <= min(a[1], b[1])
    assert len(kept) == (2 if overlap else 3)
    assert all(r.low <= r.high for r in kept)


def test_of_equally_frequent_words_the_first_are_kept() -> None:
    texts = ["zebra yard yak", "good good xylo", "zebra yard yak xylo"]
    assert tf_idf(texts, 3)[1] == ("yak", "yard", "zebra")  # all five occur twice


def test_tf_idf_rows_have_length_one_and_keep_the_frequent_words() -> None:
    texts = ["one one one two", "one two three", "one two", ""]
    X, words = tf_idf(texts, 2)
    assert words == ("one", "two")
    assert X.dtype == np.float32
    np.testing.assert_allclose(np.asarray(X.power(2).sum(axis=1)).ravel(), [1, 1, 1, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (review(4, "a", "b") + "<review>\n<rating>", "2 reviews begin but 1 end"),
        (review(7, "a", "b"), "review 1: rating '7'"),
        ("<review><rating>4.0</rating></review>", "no <review_text>"),
        ("<review><review_text>x</review_text></review>", "no <rating>"),
    ],
)
def test_damaged_reviews_are_named(text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        parse_unprocessed(text, "baby")


def test_latin_1_text_is_read() -> None:
    assert parse_unprocessed(review(5, "Café", "naïve"), "baby")[0].text == "Café\nnaïve"


def test_damaged_compact_files_are_named(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "file.gz"
    for content, reader, why in (
        (b'{"domain": "books"}\n', read_compact_stars, "line 1: damaged review"),
        (b"not json\n", read_compact_stars, "line 1"),
        (b"\xff\xfe\n", read_compact_stars, "damaged file .*utf-8"),
        (b"a\tb\n", read_intervals, "columns"),
        (b"", read_intervals, "columns"),
    ):
        path.write_bytes(gzip.compress(content))
        with pytest.raises(DataError, match=why):
            reader(path)
    path.write_bytes(gzip.compress(b"x" * 9999)[:-10])
    with pytest.raises(DataError, match="damaged"):
        read_compact_stars(path)
    with pytest.raises(DataError, match="none of positive"):
        read_official(tmp_path)


def test_wrong_choices_are_named(tmp_path: Path) -> None:
    make_amazon(tmp_path)
    for wrong in ({"sources": "six"}, {"response": "grams"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            domains(tmp_path, **wrong)
