"""The types that loaders return refuse what does not fit together."""

import numpy as np
import pytest
import scipy.sparse

from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer_lab.data import load
from vntransfer_lab.data.base import Domains, Provenance, StreamTask, TaskStream
from vntransfer_lab.data.registry import lookup

X, Y = np.arange(6.0).reshape(3, 2), np.arange(3.0)


def test_domains_are_a_mapping() -> None:
    toy = Domains("toy", {"a": (X, Y), "b": (X, Y)}, targets=("b",))
    assert dict(toy.items()).keys() == {"a", "b"}
    assert "a" in toy
    assert "c" not in toy
    assert toy.targets == ("b",)
    assert toy == toy
    assert hash(toy)
    with pytest.raises(DomainError, match="no domain 'c'; it has a, b"):
        toy["c"]


def test_domains_take_sparse_rows_pictures_and_integers() -> None:
    sparse = scipy.sparse.csr_matrix(X)
    assert Domains("toy", {"a": (sparse, Y)})["a"][0] is sparse
    pictures = np.zeros((3, 4, 5, 3), dtype=np.uint8)
    assert Domains("toy", {"a": (pictures, Y)}).summary() == (
        "toy: 1 domain, 3 rows x 4 x 5 x 3 features"
    )


def with_value(array: np.ndarray, value: float) -> np.ndarray:
    changed = array.copy()
    changed.flat[1] = value
    return changed


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        (X, Y[:2], "domain 'bad': X has 3 rows but y has 2"),
        (X[:1], Y[:1], r"domain 'bad': has 1 row\(s\), at least 2"),
        (X[:0], Y[:0], r"domain 'bad': has 0 row\(s\)"),
        (Y, Y, r"X .*\(3,\)"),
        (with_value(X, np.nan), Y, r"X has 1 values that are not finite, the first .*\(0, 1\)"),
        (X, with_value(Y, np.inf), r"y has 1 values that are not finite, the first .*\(1,\)"),
        (X, with_value(Y, np.nan), "y has 1 values that are not finite"),
        (X.astype(str), Y, "X has type <U"),
        (scipy.sparse.csr_matrix(with_value(X, np.nan)), Y, "X has 1 values"),
    ],
)
def test_bad_domains_are_named(x: np.ndarray, y: np.ndarray, match: str) -> None:
    with pytest.raises(DataError, match=match):
        Domains("toy", {"good": (X, Y), "bad": (x, y)})


def test_finite_numbers_whose_sum_overflows_are_fine() -> None:
    large = np.full((3, 2), np.finfo(np.float32).max, dtype=np.float32)
    assert Domains("toy", {"a": (large, Y)})


def test_domains_that_do_not_fit_together() -> None:
    with pytest.raises(DomainError, match=r"shape.*\(2,\) in 'a', \(1,\) in"):
        Domains("toy", {"a": (X, Y), "b": (X[:, :1], Y)})
    with pytest.raises(DomainError, match="no domains"):
        Domains("toy", {})
    with pytest.raises(DomainError, match="feature_names has 1 names for 2 columns"):
        Domains("toy", {"a": (X, Y)}, feature_names=("u",))
    with pytest.raises(DomainError, match=r"targets \['z'\]"):
        Domains("toy", {"a": (X, Y)}, targets=("z",))


def test_streams() -> None:
    def make(t: int) -> StreamTask:
        return StreamTask(X, Y, X[:2], Y[:2], name=f"task {t}")

    stream = TaskStream("toy", 3, make, n_classes=3, head_sizes=(1, 2, 3))
    assert [task.name for task in stream] == ["task 0", "task 1", "task 2"]
    assert len(stream) == 3
    assert stream[-1].name == "task 2"
    with pytest.raises(IndexError):
        stream[3]
    with pytest.raises(DomainError, match="head_sizes has 1 numbers for 3 tasks"):
        TaskStream("toy", 3, make, n_classes=3, head_sizes=(1,))
    with pytest.raises(ArgumentError, match="n_tasks"):
        TaskStream("toy", 0, make, n_classes=3)


def test_tasks_that_do_not_fit() -> None:
    with pytest.raises(DataError, match=r"task 'one', test: .* 3 rows.* 2"):
        StreamTask(X, Y, X, Y[:2], name="one")
    with pytest.raises(DataError, match="rows of x_test"):
        StreamTask(X, Y, X[:, :1], Y, name="one")


def test_provenance_reads_well() -> None:
    text = Provenance(
        built=("first", "then"),
        sources=("https://a.example",),
        citation="Who 2000",
        sha256={"a.csv": "ff"},
        verified=True,
    ).describe()
    assert text.splitlines() == [
        "source    https://a.example",
        "cite      Who 2000",
        "built     first",
        "built     then",
        "sha256    ff  a.csv",
        "files     verified: hashes are known",
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"seed": "abc"}, {"seed": -1}, {"seed": 1.5}, {"n_samples": True}],
)
def test_parameters_of_a_wrong_type_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=f"{next(iter(wrong))}: expected a"):
        load("synthetic", **wrong)


def test_unknown_parameters_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"^synthetic: .*'sed'.*'seed'"):
        lookup("synthetic").call({}, sed=1)
    with pytest.raises(ArgumentError, match=r"^mnistP: .*'max_angle'"):
        lookup("mnistP").call({}, max_angle=45.0)


@pytest.mark.parametrize("name", ["toy", "<script>", "two\nlines", "x" * 200])
def test_repr_is_one_short_line(name: str) -> None:
    task = StreamTask(X, Y, X[:2], Y[:2], name=name)
    for made in (Domains(name, {"a": (X, Y)}), TaskStream(name, 1, lambda t: task, 3)):
        text = repr(made)
        assert text.splitlines() == [text]
        assert len(text) < 120
        assert text.startswith(f"<{type(made).__name__} ")
        assert text.endswith(("features>", "classes>"))
