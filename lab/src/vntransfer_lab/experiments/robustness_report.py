"""Tables and figures of the experiment ``robustness``."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from vntransfer.holm import holm
from vntransfer.pages import Axis, Lines, Panels
from vntransfer_lab.reports.drawings import Drawing, spread
from vntransfer_lab.reports.report import Condition, Report, Values, value_table
from vntransfer_lab.reports.statistics import difference, verdict
from vntransfer_lab.reports.tables import NumberPair, ReportTable, Value, Verdict

# name -> (metric of √J, metric of the other losses)
BIASES = {
    "noisy labels, √J only": ("rmse_noisy", "rmse_plain"),
    "noisy labels, all losses": ("rmse_noisy", "rmse_noisy"),
    "clean labels, √J only": ("rmse_clean", "rmse_plain"),
    "clean labels, all losses": ("rmse_clean", "rmse_clean"),
}
_READING = ("noise_on", "spread", "response")


def tables(loaded: Report) -> list[ReportTable]:
    """Return the count per reading first, then the values of each data set."""
    return [*_reading_tables(loaded), *(value_table(loaded, d) for d in loaded.preset.data)]


def _values(loaded: Report, data: str, condition: Condition, bias: str) -> Values:
    ours, others = BIASES[bias]
    found = loaded.values(data, condition, others)
    jeffreys = loaded.values(data, condition, ours).get("jeffreys")
    return {**found, **({"jeffreys": jeffreys} if jeffreys else {})}


def _reading_tables(loaded: Report) -> list[ReportTable]:
    """How often √J is better or worse than each other loss, per reading of the experiment."""
    rivals = [method for method in loaded.preset.methods if method != "jeffreys"]
    groups: dict[tuple[Any, ...], list[tuple[str, Condition]]] = {}
    for data, condition in loaded.chosen:
        settings = _settings(loaded, condition)
        if settings["strength"] > 0:
            groups.setdefault(tuple(settings[k] for k in _READING), []).append((data, condition))
    rows: list[list[Value]] = []
    for reading, bias in product(groups, BIASES):
        counts = [_count(loaded, groups[reading], bias, rival) for rival in rivals]
        rows.append([*map(str, reading), bias, *counts])
    total = max(map(len, groups.values()), default=0)
    notes = [
        f"of {total} combinations of data set and λ > 0: √J better / worse, at the 5 % level "
        "(paired over seeds, Holm-corrected over the combinations)",
        "RMSE on clean test rows; clean labels: the bias uses labels that nobody has in practice",
    ]
    header = ["noise on", "second parameter", "response", "bias from", *(f"vs {r}" for r in rivals)]
    return [loaded.table("√J against the others", header, rows, notes)]


def _count(loaded: Report, groups: list[tuple[str, Condition]], bias: str, rival: str) -> Value:
    found = []
    for data, condition in groups:
        values = _values(loaded, data, condition, bias)
        result = difference(values.get("jeffreys", {}), values.get(rival, {}))
        if result is not None and result.p is not None:
            found.append((result, result.p))
    if not found:
        return Verdict("too few runs")
    corrected = holm([p for _, p in found]).tolist()
    verdicts = [verdict(result, p) for (result, _), p in zip(found, corrected, strict=True)]
    return NumberPair(verdicts.count("better"), verdicts.count("worse"), "/")


def _settings(loaded: Report, condition: Condition) -> Mapping[str, Any]:
    return {**loaded.preset.settings, **dict(condition)}


def figures(loaded: Report) -> Iterator[Drawing]:
    """RMSE against λ: one figure per unit of the response, one panel per data set and reading."""
    sets = list(loaded.preset.data)
    found = {(d, *_key(loaded, c)): c for d, c in loaded.chosen}
    for response in dict.fromkeys(key[3] for key in found):
        readings = list(
            dict.fromkeys(key[1:3] for key in found if key[3] == response and key[4] > 0)
        )
        charts = []
        for (noise_on, spread_as), data in product(readings, sets):
            points: dict[str, dict[float, list[float]]] = {}
            for (name, on, kind, unit, strength), condition in found.items():
                same = (on, kind) == (noise_on, spread_as) or strength == 0
                if name != data or unit != response or not same:
                    continue
                for label, metric, method in _curves(loaded):
                    values = loaded.values(data, condition, metric).get(method, {})
                    for seeds in values.values():
                        points.setdefault(label, {})[strength] = list(seeds.values())
            series = [
                spread(label, line, dash="dashed" if "clean" in label else "solid")
                for label, line in points.items()
            ]
            title = f"{data}: noise on {noise_on}, {spread_as}"
            y = Axis("RMSE / std of response", low=0)
            charts.append(Lines(series, Axis("λ"), y, title=title))
        chart = Panels(charts, share=False, columns=len(sets))
        caption = "RMSE on clean test rows against the strength λ of the noise, mean ± standard "
        caption += "error over seeds; dashed: with labels that nobody has in practice."
        yield Drawing(str(response), f"RMSE under noise, {response} response", chart, caption)


def _curves(loaded: Report) -> Iterator[tuple[str, str, str]]:
    """Label, metric and method of the lines of a panel."""
    for method in loaded.preset.methods:
        name = "√J" if method == "jeffreys" else method
        yield name + (" + bias" if method == "jeffreys" else ""), "rmse", method
        if method in ("jeffreys", "mse"):
            yield f"{name} + bias from clean labels", "rmse_clean", method


def _key(loaded: Report, condition: Condition) -> tuple[Any, ...]:
    settings = _settings(loaded, condition)
    return (*(settings[name] for name in _READING), settings["strength"])
