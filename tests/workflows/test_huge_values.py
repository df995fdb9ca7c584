"""Values and predictions that cannot be, and rows of other places than the model's."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.towns import towns, write
from vntransfer import adapt, learn_tasks
from vntransfer.errors import DataError, DataWarning, PredictionError
from vntransfer.workflows.predict import predict_file

QUICK: dict[str, Any] = {"domain": "town", "response": "price", "target": "new", "compare": ()}


@pytest.mark.parametrize("method", ["ridge", "boosting", "source_only", "auto"])
@pytest.mark.parametrize("column", ["price", "size"])
def test_huge_values_are_named_by_row_and_column(method: str, column: str) -> None:
    for size in (1e150, 1e308):
        table = towns()
        table[column][30:32] = [size, size]
        with pytest.raises(DataError, match=rf"row 32, column '{column}'.* 1e.*rescale"):
            adapt(table, **QUICK, method=method)


class Broken:
    """An estimator whose last prediction is not a number."""

    def predict(self, X: Any) -> Any:
        raise PredictionError("X: the prediction of the last row is nan", len(X) - 1)


def test_a_prediction_that_is_not_finite_names_the_row_of_the_table(tmp_path: Path) -> None:
    model = replace(adapt(towns(), **QUICK, method="ridge"), estimators={"new": Broken()})
    later = {"size": [50.0, 60.0, 70.0], "garden": ["yes"] * 3, "kind": ["flat"] * 3}
    with pytest.raises(DataError, match=r"row 4: .*finite"):
        model.predict(later)
    file, out = write(tmp_path / "later.csv", later), tmp_path / "out.csv"
    with pytest.raises(DataError, match=r"row 4: .*finite"):
        predict_file(model, file, out)
    assert not out.exists()


def test_rows_of_another_place_are_a_warning() -> None:
    model = adapt(towns(), **QUICK, method="ridge")
    later = {"size": [50.0, 60.0], "garden": ["yes"] * 2, "kind": ["flat"] * 2}
    with pytest.warns(DataWarning, match=r"1 of 2 rows.*west.*'new'"):
        model.predict({"town": ["new", "west"], **later})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(later)
        model.predict({"town": ["new", "new"], **later})
        model.predict({"town": ["new", "west"], **later}, target="new")


def test_huge_responses_of_tasks_are_named() -> None:
    table = {name: own[:100] for name, own in towns().items()}
    table["price"][30] = 1e200
    with pytest.raises(DataError, match=r"row 32, column 'price' is 1e\+200.*rescale"):
        learn_tasks(table, task="town", response="price", method="sgd")


@pytest.mark.parametrize("response", ["price", "garden"])
def test_networks_of_tasks_name_the_row_too(response: str) -> None:
    table = {name: own[:100] for name, own in towns().items()}  # towns with a price
    model = learn_tasks(table, task="town", response=response, method="sgd")
    model.network.arrays["0.weight"].fill(np.nan)
    with pytest.raises(DataError, match=r"row 2: .*finite"):
        model.predict(table)


def test_responses_of_the_target_are_still_not_read() -> None:
    table = towns()
    table["price"][-1] = 1e300
    assert adapt(table, **QUICK, method="ridge").targets == ["new"]
