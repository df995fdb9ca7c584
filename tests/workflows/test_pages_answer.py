"""Pages of models: the answer first, figures of what was held out, long tables folded."""

import re

import numpy as np
import pytest

from vntransfer import adapt, learn_tasks
from vntransfer.workflows.adapt_figures import PANELS
from vntransfer.workflows.adapt_page import make_page
from vntransfer.workflows.learn_page import make_page as learn_page


def table(sources: int, rows: int = 30) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    places = [f"town {k}" for k in range(sources)] + ["new"]
    town, x = np.repeat(places, rows), rng.normal(size=(rows * len(places), 2))
    y = 100 + 30 * x[:, 0] + 5 * x[:, 1] + rng.normal(size=len(town))
    return {"town": town, "a": x[:, 0], "b": x[:, 1], "price": np.where(town == "new", np.nan, y)}


@pytest.fixture(scope="module", params=[3, 30])
def page(request: pytest.FixtureRequest) -> tuple[int, str]:
    options = {"domain": "town", "response": "price", "target": "new", "method": "ridge"}
    model = adapt(table(request.param), compare=(), **options)
    return request.param, make_page(model).html()


def test_the_lead_is_a_verdict_in_the_users_words(page: tuple[int, str]) -> None:
    lead = re.findall(r'<p class="lead">(.*?)</p>', page[1])[0]
    assert lead.startswith("Predictions of price for new should be off by ")
    assert "one constant for all rows would be off by " in lead


def test_figures_show_held_out_sources_inputs_and_predictions(page: tuple[int, str]) -> None:
    sources, html = page
    for title in ("Error on each held-out source", "Predicted and actual", "Where new lies"):
        assert title in html
    assert "of its rows lie among the sources" in html
    assert len(re.findall(r"town \d+: error", html)) >= min(sources, PANELS)
    shown = re.search(r"Show [\d of]+ further held-out sources", html)
    assert bool(shown) == (sources > PANELS)


def test_long_tables_are_folded_and_the_constant_is_compared(page: tuple[int, str]) -> None:
    sources, html = page
    assert ("Show 30 rows" in html) == (sources == 30)
    assert ">one constant (median)</text>" in html


def test_forgetting_is_averaged_over_the_same_tasks() -> None:
    data = {k: v[:-30] for k, v in table(5, 40).items() if k != "town"}
    data["week"] = np.repeat(np.arange(5), len(data["a"]) // 5 + 1)[: len(data["a"])]
    data = {k: v[np.isfinite(data["price"])] for k, v in data.items()}
    model = learn_tasks(data, task="week", response="price", method="sgd")
    curve = model.curve()
    assert len(curve) == 3
    assert curve[0] == pytest.approx(np.diag(model.matrix)[:3].mean())
    assert curve[2] == pytest.approx(np.diag(model.matrix, -2).mean())
    html = learn_page({"sgd": model}, "sgd").html()
    assert "How it was done" in html
    assert "After learning 5 tasks in turn, one model" in html
    assert "Mean over the same 3 tasks at every step" in html


def test_the_page_of_several_targets_opens_with_all_of_them() -> None:
    data = table(4)
    hidden = np.isin(data["town"], ["new", "town 3"])
    data["price"] = np.where(hidden, np.nan, data["price"])
    data["a"] = np.where(data["town"] == "new", data["a"] + 40, data["a"])
    targets = ["town 3", "new"]
    options = {"domain": "town", "response": "price", "method": "ridge", "compare": ()}
    html = make_page(adapt(data, target=targets, **options)).html()
    (lead,) = re.findall(r'<p class="lead">(.*?)</p>', html)
    assert lead.startswith("Predictions of price for 2 places should be off by ")
    assert lead.endswith("new resembles no source: errors there may be much larger.")
    all_targets, one = "<h3>Expected error at each target", "<h3>Error on each held-out source"
    assert html.index(all_targets) < html.index(one)
    assert html.index("How it was done</h2>") > html.rindex("<figure")
