"""Streams: exact moments in any split, bounded memory, fair samples, intervals that cover."""

import threading
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.relation_worlds import towns, write_csv
from vntransfer.errors import DataError
from vntransfer.relations import RelateSettings
from vntransfer.relations._bootstrap import bootstrap, interval
from vntransfer.relations._matrices import Totals, divergences
from vntransfer.relations.summaries import BLOCKS, MomentBlocks, RowReservoir, Summaries
from vntransfer.tables.files import ahead
from vntransfer.tables.options import DEFAULTS
from vntransfer.workflows.relate import read_table
from vntransfer.workflows.streaming import (
    FilePart,
    ReadingPlan,
    _quick_csv,
    summarize,
)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=6), st.integers(0, 99))
def test_moments_are_exact_however_rows_come(pieces: list[int], seed: int) -> None:
    rows = 5 + np.random.default_rng(seed).standard_normal((3, sum(pieces) + 1))
    one = MomentBlocks(3)
    for part in np.split(rows, np.cumsum(pieces), axis=1):
        one.add(part)
    np.testing.assert_allclose(one.total().covariance(), np.cov(rows), rtol=1e-9, atol=1e-12)
    assert len(one) <= 2 * BLOCKS
    assert len(one) >= min(rows.shape[1], BLOCKS // 2)
    assert one.rows == rows.shape[1]


@given(st.lists(st.integers(1, 900), min_size=2, max_size=6), st.integers(0, 99))
def test_digits_survive_large_levels_and_drift(pieces: list[int], seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((2, sum(pieces)))
    rows[0] += 1e6  # far from zero beside its spread
    rows[1] += np.linspace(0, 300, rows.shape[1])  # the first rows are not like the last
    one, parts = MomentBlocks(2), []
    for part in np.split(rows, np.cumsum(pieces)[:-1], axis=1):
        one.add(part)
        parts.append(MomentBlocks(2))
        parts[-1].add(part)
    merged = MomentBlocks(2)
    for part in parts:
        merged.merge(part)
    expected = np.cov(rows) if rows.shape[1] > 1 else np.zeros((2, 2))
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    for own in (one, merged):
        found = own.total()
        assert (np.abs(found.covariance() - expected) <= 1e-9 * scale + 1e-12).all()
        np.testing.assert_allclose(found.mean, rows.mean(1), rtol=1e-12)
        count, mean, _ = own.stacked()
        np.testing.assert_allclose(count @ mean / count.sum(), rows.mean(1), rtol=1e-12)


@given(st.lists(st.integers(1, 3000), min_size=3, max_size=8), st.booleans())
def test_blocks_are_equally_large_however_long_the_stream(pieces: list[int], split: bool) -> None:
    # Blocks that grow with their age would leave a few that hold nearly all rows.
    whole, Z = MomentBlocks(1), np.random.default_rng(0).standard_normal((1, sum(pieces)))
    for part in np.split(Z, np.cumsum(pieces)[:-1], axis=1):
        other = MomentBlocks(1)
        (other if split else whole).add(part)
        whole.merge(other)
    count = whole.stacked()[0]
    assert count.sum() == whole.rows == sum(pieces)
    assert (count[:-1] >= whole.size).all()
    assert (count < 2 * whole.size).all()


def test_blocks_give_the_intervals_of_single_rows() -> None:
    rng = np.random.default_rng(0)
    sigma, n, B, name = np.eye(3) + 0.5, 6000, 400, "conditional_von_neumann"
    rows = [
        np.linalg.cholesky(matrix) @ rng.standard_normal((3, n))
        for matrix in (sigma, sigma + np.diag([0.3, 0.0, 0.8]))
    ]
    blocks = [MomentBlocks(3), MomentBlocks(3)]
    for own, Z in zip(blocks, rows, strict=True):
        for part in np.split(Z, 8, axis=1):
            own.add(part)
    assert all(len(own) <= 2 * BLOCKS for own in blocks)
    ours = bootstrap(blocks, np.ones(3), name, ridge=0, n_resamples=B, rng=rng)[:, 0, 1]
    single = []
    for _ in range(B):  # Poisson weights of single rows
        drawn = [np.cov(Z, fweights=rng.poisson(1.0, n)) for Z in rows]
        single.append(divergences(np.stack(drawn), name)[0, 1])
    # A standard deviation of 400 draws is known to 3.5 %, that of 188 blocks to 5 % more.
    assert np.std(ours) == pytest.approx(np.std(single), rel=0.2)
    assert np.mean(ours) == pytest.approx(np.mean(single), abs=0.2 * np.std(single))


def test_float32_is_read_as_what_it_is() -> None:
    Z = (1000 + np.random.default_rng(0).standard_normal((3, 4000))).astype(np.float32)
    made, names = Summaries(2), ["a", "b"]
    made.add(np.arange(4000) % 2, names, list(Z), np.random.default_rng(1))
    for k, name in enumerate(names):
        own = made.domains[name]
        expected = np.cov(Z[:, k::2].astype(np.float64))
        np.testing.assert_allclose(own.joint.total().covariance(), expected, rtol=1e-9)
        assert own.reservoir.rows.dtype == np.float64


@given(st.integers(2, 2000), st.integers(2, 2000), st.integers(0, 99))
def test_merging_summaries_is_seeing_all_rows(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((2, n + m))
    both, other = Summaries(1), Summaries(1)
    both.add(rng.integers(0, 2, n), ["a", "b"], rows[:, :n], rng)
    other.add(rng.integers(0, 2, m), ["b", "a"], rows[:, n:], rng)
    both.merge(other)
    whole = reduce(Totals.merge, (own.joint.total() for own in both.domains.values()))
    np.testing.assert_allclose(whole.covariance(), np.cov(rows), rtol=1e-9, atol=1e-12)
    assert sum(own.labeled for _, own in both.domains.items()) == n + m


def test_single_rows_are_blocks_where_there_are_few() -> None:
    own = MomentBlocks(1)
    own.add(np.arange(200.0)[None])
    assert len(own) == 200


def test_wide_tables_keep_fewer_blocks() -> None:
    own = MomentBlocks(200)
    own.add(np.random.default_rng(0).standard_normal((200, 5000)))
    assert 32 <= len(own) <= 64


def test_reservoir_is_uniform() -> None:
    counts = np.zeros(60)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        kept = RowReservoir(1, capacity=10)
        for start in (0, 20, 30):
            rows = np.arange(start, {0: 20, 20: 30, 30: 60}[start], dtype=float)
            kept.add(rng.permutation(rows)[None], rng)
        counts[kept.rows[:, 0].astype(int)] += 1
    # 300 draws with probability 1/6: 50 +- 6.5 each
    assert counts.sum() == 3000
    assert np.abs(counts - 50).max() < 5 * 6.5


def test_intervals_cover_and_plain_percentiles_do_not() -> None:
    sigma, name = np.eye(3) + 0.5, "conditional_von_neumann"
    other = sigma + np.diag([0.5, 0.5, 0.5])
    hits = {"equal": 0, "different": 0, "percentiles": 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)

        def drawn(matrix: np.ndarray, rng: np.random.Generator = rng) -> MomentBlocks:
            own = MomentBlocks(3)
            own.add(np.linalg.cholesky(matrix) @ rng.standard_normal((3, 400)))
            return own

        domains = [drawn(sigma), drawn(sigma), drawn(other)]
        stack = np.stack([own.total().covariance() for own in domains])
        observed = divergences(stack, name)
        resampled = bootstrap(domains, np.ones(3), name, ridge=0, n_resamples=100, rng=rng)
        low, high = interval(observed, resampled, 0.95)
        true = divergences(np.stack((sigma, sigma, other)), name)
        inside = (low <= true) & (true <= high)
        hits["equal"] += inside[0, 1]
        hits["different"] += inside[0, 2]
        hits["percentiles"] += np.quantile(resampled[:, 0, 1], 0.025) <= 0
    assert hits["equal"] >= 18
    assert hits["different"] >= 16
    assert hits["percentiles"] == 0


def files(folder: Path) -> dict[str, Path]:
    import pyarrow.parquet as pq

    table = towns()
    pq.write_table(pa.table(table), folder / "t.parquet", row_group_size=150)
    return {"csv": write_csv(folder / "t.csv", table), "parquet": folder / "t.parquet"}


def test_table_csv_and_parquet_give_the_same(tmp_path: Path) -> None:
    seen = {}
    for kind, data in {**files(tmp_path), "memory": towns()}.items():
        made, encoder, _ = read_table(data, RelateSettings(domain="town", response="price"))
        assert sorted(encoder.names) == ["area", "kind=flat", "kind=house"], kind
        seen[kind] = made
    for name in ("Lyon", "Oslo"):
        totals = [made.domains[name].joint.total().covariance() for made in seen.values()]
        for other in totals[1:]:
            np.testing.assert_allclose(other, totals[0], rtol=1e-9, atol=1e-9)
        assert all(made.domains[name].labeled == 200 for made in seen.values())
    assert all(made.domains["new"].unlabeled == 200 for made in seen.values())


def test_numbers_take_the_short_way_and_gaps_the_long_one(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    x = rng.standard_normal(500)
    table = {"town": ["a", "b"] * 250, "x": x, "y": rng.standard_normal(500)}
    plan = read_table(table, RelateSettings(domain="town", response="y"))[1]
    path = tmp_path / "gap.parquet"
    holes = np.where(np.arange(500) == 77, np.nan, x)
    pq.write_table(pa.table(table | {"x": pa.array(holes, from_pandas=True)}), path)
    made = summarize(
        ReadingPlan("town", "y", plan, DEFAULTS, 0, Summaries(1)), FilePart(path, (0,), 0)
    )
    filled = np.where(np.isnan(holes), np.median(x), x)
    ours = reduce(Totals.merge, (own.joint.total() for own in made.domains.values())).covariance()
    np.testing.assert_allclose(ours, np.cov(filled, table["y"]), rtol=1e-9)
    assert list(made.notes.values()) == [1]


def test_large_csv_by_arrow_is_the_plain_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 900))
    table = {"town": ["a", "b", "c"] * 300, "x": x.tolist(), "y": y.tolist()}
    path = write_csv(tmp_path / "t.csv", table)
    made, encoder, _ = read_table(path, RelateSettings(domain="town", response="y"))
    quick = _quick_csv(
        ReadingPlan("town", "y", encoder, DEFAULTS, 0, Summaries(1)),
        FilePart(path, None, 0),
        lambda rows, share: None,
    )
    assert quick is not None
    for name, own in quick.domains.items():
        ours, theirs = own.joint.total(), made.domains[name].joint.total()
        np.testing.assert_allclose(ours.covariance(), theirs.covariance(), rtol=1e-9)
    plan = ReadingPlan("town", "y", encoder, DEFAULTS, 0, Summaries(1))
    for not_plain in ("town,x,y\na,1,2\nb,many,3\n", "town,x,y\na,1,2\n,2,3\n"):
        path.write_text(not_plain)
        assert _quick_csv(plan, FilePart(path, None, 0), lambda rows, share: None) is None
    path.write_text("town, x, y\na,1,2\n")
    assert _quick_csv(plan, FilePart(path, None, 0), lambda rows, share: None) is not None


def test_reading_ahead_keeps_order_hands_on_errors_and_ends() -> None:
    before = threading.active_count()

    def broken() -> Iterator[int]:
        yield from range(5)
        raise DataError("row 7")

    seen = []
    with pytest.raises(DataError, match="row 7"), ahead(broken()) as pieces:
        seen.extend(pieces)
    assert seen == [0, 1, 2, 3, 4]
    with ahead(iter(int, 1)) as endless:
        assert next(endless) == 0
    assert threading.active_count() == before


def test_rows_of_several_files_are_told_apart(tmp_path: Path) -> None:
    good = towns(30)
    first = write_csv(tmp_path / "1.csv", good)
    bad = {**good, "area": ["wide" if k == 4 else v for k, v in enumerate(good["area"])]}
    second = write_csv(tmp_path / "2.csv", bad)
    with pytest.raises(DataError, match=r"row 6 of .*2\.csv, column 'area': 'wide' is not"):
        read_table([first, second], RelateSettings(domain="town", response="price"))


def test_too_many_places_are_refused(tmp_path: Path) -> None:
    table = {"id": list(range(300)), "x": [1.5, 2.5] * 150, "y": [0.5, 1.0, 2.0] * 100}
    with pytest.raises(DataError, match="'id': has more than 200 places"):
        read_table(table, RelateSettings(domain="id", response="y"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_give_the_same_numbers(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    from vntransfer import relate

    paths = [write_csv(tmp_path / f"{k}.csv", towns(seed=k)) for k in range(3)]
    paths.append(files(tmp_path)["parquet"])
    options = {"domain": "town", "response": "price", "n_resamples": 99, "n_bootstrap": 20}
    here = relate(paths, **options)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        there = relate(paths, **options, engine="dask", scheduler=cluster.scheduler_address)
    for key in ("divergences", "features_alone", "p_values"):
        np.testing.assert_allclose(getattr(there, key), getattr(here, key), rtol=1e-9)
    np.testing.assert_allclose(there.intervals.high, here.intervals.high, rtol=1e-9)
    assert there.names == here.names
