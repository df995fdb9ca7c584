"""Streams: exact moments in any split, bounded memory, fair samples, intervals that cover."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vntransfer.errors import DataError
from vntransfer.relate._intervals import bootstrap, divergences, interval
from vntransfer.relate._stream import Part, Plan, _quick_csv, read_table, summarise
from vntransfer.relate._summary import BLOCKS, Blocks, Reservoir, Summaries, pooled
from worlds_relate import towns, write_csv

pa = pytest.importorskip("pyarrow")


@given(st.lists(st.integers(1, 700), min_size=1, max_size=6), st.integers(0, 99))
def test_moments_are_exact_however_rows_come(pieces: list[int], seed: int) -> None:
    rows = 5 + np.random.default_rng(seed).standard_normal((3, sum(pieces) + 1))
    one = Blocks(3)
    for part in np.split(rows, np.cumsum(pieces), axis=1):
        one.add(part)
    np.testing.assert_allclose(one.total().covariance(), np.cov(rows), rtol=1e-9, atol=1e-12)
    assert len(one) <= 2 * BLOCKS
    assert len(one) >= min(rows.shape[1], BLOCKS // 2)
    assert one.rows == rows.shape[1]


@given(st.integers(2, 2000), st.integers(2, 2000), st.integers(0, 99))
def test_merging_summaries_is_seeing_all_rows(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((2, n + m))
    both, other = Summaries(1), Summaries(1)
    both.add(rng.integers(0, 2, n), ["a", "b"], rows[:, :n], rng)
    other.add(rng.integers(0, 2, m), ["b", "a"], rows[:, n:], rng)
    both.merge(other)
    whole = pooled([own.joint for _, own in both.items()])
    np.testing.assert_allclose(whole.covariance(), np.cov(rows), rtol=1e-9, atol=1e-12)
    assert sum(own.labelled for _, own in both.items()) == n + m


def test_single_rows_are_blocks_where_there_are_few() -> None:
    own = Blocks(1)
    own.add(np.arange(200.0)[None])
    assert len(own) == 200


def test_wide_tables_keep_fewer_blocks() -> None:
    own = Blocks(200)
    own.add(np.random.default_rng(0).standard_normal((200, 5000)))
    assert 32 <= len(own) <= 64


def test_reservoir_is_uniform() -> None:
    counts = np.zeros(60)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        kept = Reservoir(1, capacity=10)
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

        def drawn(matrix: np.ndarray, rng: np.random.Generator = rng) -> Blocks:
            own = Blocks(3)
            own.add(np.linalg.cholesky(matrix) @ rng.standard_normal((3, 400)))
            return own

        domains = [drawn(sigma), drawn(sigma), drawn(other)]
        stack = np.stack([own.total().covariance() for own in domains])
        observed = divergences(torch.from_numpy(stack), name)
        resampled = bootstrap(domains, np.ones(3), name, ridge=0, n_resamples=100, rng=rng)
        low, high = interval(observed, resampled, 0.95)
        true = divergences(torch.from_numpy(np.stack((sigma, sigma, other))), name)
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
        made, encoder, _ = read_table(data, domain="town", response="price")
        assert sorted(encoder.names) == ["area", "kind=flat", "kind=house"], kind
        seen[kind] = made
    for name in ("Lyon", "Oslo"):
        totals = [made.domains[name].joint.total().covariance() for made in seen.values()]
        for other in totals[1:]:
            np.testing.assert_allclose(other, totals[0], rtol=1e-9, atol=1e-9)
        assert all(made.domains[name].labelled == 200 for made in seen.values())
    assert all(made.domains["new"].unlabelled == 200 for made in seen.values())


def test_numbers_take_the_short_way_and_gaps_the_long_one(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    x = rng.standard_normal(500)
    table = {"town": ["a", "b"] * 250, "x": x, "y": rng.standard_normal(500)}
    plan = read_table(table, domain="town", response="y")[1]
    path = tmp_path / "gap.parquet"
    holes = np.where(np.arange(500) == 77, np.nan, x)
    pq.write_table(pa.table(table | {"x": pa.array(holes, from_pandas=True)}), path)
    made = summarise(Plan("town", "y", plan, ",", 0), Part(path, (0,), 0))
    filled = np.where(np.isnan(holes), np.median(x), x)
    ours = pooled([own.joint for _, own in made.items()]).covariance()
    np.testing.assert_allclose(ours, np.cov(filled, table["y"]), rtol=1e-9)
    assert list(made.notes.values()) == [1]


def test_large_csv_by_arrow_is_the_plain_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 900))
    table = {"town": ["a", "b", "c"] * 300, "x": x.tolist(), "y": y.tolist()}
    path = write_csv(tmp_path / "t.csv", table)
    made, encoder, _ = read_table(path, domain="town", response="y")
    quick = _quick_csv(Plan("town", "y", encoder, ",", 0), Part(path, None, 0))
    assert quick is not None
    for name, own in quick.items():
        ours, theirs = own.joint.total(), made.domains[name].joint.total()
        np.testing.assert_allclose(ours.covariance(), theirs.covariance(), rtol=1e-9)
    path.write_text("town,x,y\na,1,2\nb,many,3\n")
    assert _quick_csv(Plan("town", "y", encoder, ",", 0), Part(path, None, 0)) is None


def test_too_many_places_are_refused(tmp_path: Path) -> None:
    table = {"id": list(range(300)), "x": [1.5, 2.5] * 150, "y": [0.5, 1.0, 2.0] * 100}
    with pytest.raises(DataError, match="'id': has more than 200 places"):
        read_table(table, domain="id", response="y")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_give_the_same_numbers(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    from vntransfer.relate import relate

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
