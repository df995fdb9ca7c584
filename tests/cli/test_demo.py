"""``vnt demo`` as a newcomer runs it."""

import numpy as np
import pytest
from typer.testing import CliRunner

from vntransfer.cli import app, main
from vntransfer.cli._show import heat_map
from vntransfer.data.synthetic import friedman_domains
from vntransfer.divergences import pairwise


def test_demo_prints_table_and_map_of_all_domains() -> None:
    result = CliRunner().invoke(app, ["demo", "--samples", "200", "--seed", "3"])
    assert result.exit_code == 0
    assert result.output.count("s6") >= 3
    assert "██" in result.output
    assert f"{related(200, seed=3)[0, 5]:.3g}" in result.output


def related(samples: int, seed: int) -> np.ndarray:
    domains = friedman_domains(samples, seed=seed)
    scale = np.concatenate([y for _, y in domains.values()]).std()
    return np.asarray(pairwise([(x, y / scale) for x, y in domains.values()]))


@pytest.mark.parametrize("seed", range(3))
def test_divergence_grows_with_distance_between_synthetic_domains(seed: int) -> None:
    for row, others in enumerate(related(1000, seed)):
        assert (np.diff(others[row:]) > 0).all()


def test_heat_map_of_equal_domains_is_blank() -> None:
    assert "█" not in str(heat_map(["a", "b"], np.zeros((2, 2))))


def test_foreseen_errors_are_a_sentence_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vntransfer.errors import DataError

    def fail() -> None:
        raise DataError("data: nothing here; put something there")

    monkeypatch.setattr("vntransfer.cli.app", fail)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert capsys.readouterr().err == "vnt: data: nothing here; put something there\n"
