"""Fill the tables of docs/paper-and-us.md and its appendix: the paper's numbers beside ours.

A page names a table between two comments, ``<!-- paper "table 1" -->`` and ``<!-- end -->``.
Numbers come from a preset (the paper's) or an archive in lab/results (ours); runs without an
archive are marked.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from vntransfer_lab.reports.report import Report, load_report
from vntransfer_lab.reports.statistics import estimate
from vntransfer_lab.reports.tables import Number, ReportTable, Value, render, text
from vntransfer_lab.runner.preset import read_preset

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "paper-and-us.md"
APPENDIX = ROOT / "docs" / "experiments" / "paper-tables.md"
PLACE = re.compile(r'(?P<head><!-- paper "(?P<name>[^"]+)" -->\n).*?(?P<tail><!-- end -->)', re.S)
STREAMS = ("mnistP", "mnistR", "fashionP", "notmnistP")
MISSING = "not run yet"
RIVALS = ("ahd_1s", "dann", "ahd_msda", "darn", "mdan_max", "mdan_dyn", "mdd_paper")

Means = dict[str, dict[str, float]]  # method -> target -> error


def archive(name: str) -> Report | None:
    """Read archived results; None if there are none."""
    folder = ROOT / "lab" / "results" / name
    return load_report(folder) if folder.exists() else None


def markdown(header: list[str], rows: list[list[Value]]) -> str:
    """Give a table without title and notes."""
    return render([ReportTable("", header, rows)], "markdown").partition("\n\n")[2]


def paper_values(preset: str) -> Means:
    """Return the paper's values of a preset: of each method on each target."""
    found: Means = {}
    for targets in read_preset(preset)[1]["paper"]["values"].values():
        for target, methods in targets.items():
            for method, value in methods.items():
                plain = value if isinstance(value, int | float) else next(iter(value.values()))
                found.setdefault(method, {})[target] = float(plain)
    return found


def our_values(loaded: Report, metric: str) -> Means:
    """Return our means over seeds, of each method on each target."""
    ((data, condition),) = loaded.chosen
    return {
        method: {target: fmean(seeds.values()) for target, seeds in targets.items()}
        for method, targets in loaded.values(data, condition, metric).items()
    }


def best_on(values: Means, method: str, among: Sequence[str]) -> str:
    """Say on how many targets a method has the smallest error."""
    targets = list(dict.fromkeys(t for m in among for t in values.get(m, {})))
    won = sum(
        min((values[m][t], m) for m in among if t in values.get(m, {}))[1] == method
        for t in targets
    )
    return f"{won} of {len(targets)}"


def error_rows(paper: Means, ours: Means | None) -> list[list[Value]]:
    """Give a row for each method of the paper, then for those that it does not have."""
    rows: list[list[Value]] = []
    own = ours or {}
    more = [m for m in ("source_only", "align", "coral", "boosting", "ridge") if m in own]
    for method in (*RIVALS, *more):
        if method not in paper and method not in own:
            continue
        row: list[Value] = [method]
        if method in paper:
            complete = len(paper[method]) == len(paper["mdd_paper"])
            row += [fmean(paper[method].values()) if complete else "not all targets"]
            row += [best_on(paper, method, [m for m in RIVALS if m in paper])]
        else:
            row += [None, None]
        if method in own:
            among = [m for m in RIVALS if m in own]
            row += [fmean(own[method].values())]
            row += [best_on(own, method, among) if method in RIVALS else None]
            row += [Number(fmean(own[method].values()) / fmean(own["source_only"].values()), ".3f")]
        else:
            row += [MISSING if ours is None else None, None, None]
        rows.append(row)
    return rows


def error_table(preset: str, name: str, metric: str = "mae") -> str:
    """Compare mean errors over targets, and on how many targets a method is best."""
    loaded = archive(name)
    header = ["method", "paper: mean error", "paper: best on", f"ours (`{name}`): mean error"]
    header += ["ours: best on", "ours / without adaptation"]
    return markdown(
        header,
        error_rows(paper_values(preset), None if loaded is None else our_values(loaded, metric)),
    )


def target_table(preset: str, name: str, metric: str = "mae") -> str:
    """Give the errors of the paper's methods on every target: the paper's and ours."""
    paper, loaded = paper_values(preset), archive(name)
    ours = {} if loaded is None else our_values(loaded, metric)

    def said(values: Means, method: str, target: str) -> str:
        value = values.get(method, {}).get(target)
        return "-" if value is None else text(value)

    methods = [m for m in RIVALS if m in paper]
    rows: list[list[Value]] = [
        [t, *(f"{said(paper, m, t)}; {said(ours, m, t)}" for m in methods)]
        for t in paper["mdd_paper"]
    ]
    return markdown(["target", *methods], rows)


def final_values(
    name: str, stream: str, methods: Sequence[str], metric: str = "ra"
) -> dict[str, Value]:
    """Give a metric of methods on a stream of an archive, or that they diverged."""
    loaded = archive(name)
    if loaded is None:
        return dict.fromkeys(methods, MISSING)
    found: dict[str, Value] = {}
    group = next(group for group in loaded.chosen if group[0] == stream)
    values = loaded.values(*group, metric)
    for method in methods:
        lost = loaded.diverged[group].get((method, stream))
        seeds = values.get(method, {}).get(stream)
        own = None if seeds is None else estimate(list(seeds.values()))
        found[method] = str(lost) if lost else own
    return found


def _one(value: float | None) -> Value:
    return None if value is None else Number(value, ".1f")


PRINTED = {
    "sgd": "sgd",
    "agem": "agem",
    "mer": "mer",
    "rewc": "rewc_published",
    "ewc": "ewc_squared_mean",
    "rsp": "rsp_published",
    "rsp, EWC's strength cut at 9": "rsp_published_cut",
    "ewc, Fisher as in the text": "ewc_explicit",
    "rsp, Fisher as in the text": "rsp_explicit",
}
"""Methods of Table 3 by their names in `table3-published`."""
OURS = ("covp", "closed_form")
"""Methods of ours beside them."""


def table_3(metric: str = "ra") -> str:
    """Compare the paper's methods on every stream at the printed settings with the paper."""
    paper = read_preset("table3")[1]["paper"]["values"]
    names = list(PRINTED.values())
    found = {s: final_values("table3-published", s, names, metric) for s in STREAMS}
    rows: list[list[Value]] = []
    for method, name in PRINTED.items():
        row: list[Value] = [method]
        for stream in STREAMS:
            known = paper[stream][stream].get(method.partition(",")[0], {})
            row += [found[stream][name], _one(known.get(metric))]
        rows.append(row)
    return markdown(["method", *(word for s in STREAMS for word in (s, "paper"))], rows)


def table_3_searched() -> str:
    """RA of the same methods and of ours, with searches at full length."""
    methods = [*(m for m in PRINTED if "," not in m), *OURS]
    found = {s: final_values("table3-full", s, methods) for s in STREAMS}
    rows: list[list[Value]] = [[m, *(found[s][m] for s in STREAMS)] for m in methods]
    return markdown(["method", *STREAMS], rows)


def table_8() -> str:
    """RA for numbers of groups."""
    paper = read_preset("groups")[1]["paper"]["values"]
    counts = (5, 10, 15, 20)
    rows: list[list[Value]] = []
    for stream in STREAMS:
        names = [f"rsp_{k}_groups" for k in counts]
        published = [f"rsp_published_{k}_groups" for k in counts]
        known = [_one(paper[stream][stream][name]) for name in names]
        at, ours = (
            final_values("groups-published", stream, published),
            final_values("groups", stream, names),
        )
        rows.append([stream, "the paper's", *known])
        rows.append(["", "ours at its learning rates", *(at[name] for name in published)])
        rows.append(["", "ours at our settings", *(ours[name] for name in names)])
    return markdown(["stream", "whose", *(f"{k} groups" for k in counts)], rows)


def table_9() -> str:
    """RA and LA on Omniglot."""
    values = read_preset("omniglot")[1]["paper"]["values"]["omniglot"]["omniglot"]
    loaded = archive("omniglot")
    assert loaded is not None
    ((data, condition),) = loaded.chosen
    found = {metric: loaded.values(data, condition, metric) for metric in ("ra", "la")}
    rows: list[list[Value]] = []
    for method in ("agem", "mer", "ewc", "rewc", "rsp", "sgd", "covp", "covp_input", "closed_form"):
        known: Mapping[str, float] = values.get(method, {})
        ours = [estimate(list(found[m][method][data].values())) for m in ("ra", "la")]
        rows.append([method, _one(known.get("ra")), _one(known.get("la")), *ours])
    header = ["method", "paper: RA", "paper: LA", "ours, reduced (`omniglot`): RA", "LA"]
    return markdown(header, rows)


def weights() -> str:
    """Describe the weights on the synthetic domains, for every setting."""
    rows: list[list[Value]] = []
    runs = (
        ("synthetic-published", "mdd_published", "MDD, Adam on the weights", "the paper's"),
        ("synthetic-published", "mdd_printed", "MDD, plain steps on the weights", "both"),
        ("synthetic-paper", "mdd_paper", "MDD, plain steps, anchored", "both"),
        ("synthetic", "mdd_paper", "MDD, anchored, our network and strength", "ours"),
        ("synthetic", "align", "moment alignment", "ours"),
        ("synthetic", "ahd_msda_adam", "AHD-MSDA, Adam on the weights", "both"),
        ("synthetic", "ahd_msda", "AHD-MSDA, plain steps on the weights", "ours"),
        ("synthetic", "darn", "DARN", "ours"),
    )
    for name, method, label, settings in runs:
        loaded = archive(name)
        assert loaded is not None
        (table,) = (t for t in loaded.tables() if t.title == "weights of the sources")
        (row,) = (dict(zip(table.header, r, strict=True)) for r in table.rows if r[1] == method)
        rows.append([label, settings, *(row[c] for c in ("largest", "closeness", "asymmetry"))])
    return markdown(["weights of", "settings", "largest", "closeness", "asymmetry"], rows)


TABLES = {
    "table 1": lambda: error_table("amazon", "amazon7i"),
    "table 2": lambda: error_table("trancos", "trancos"),
    "table 3": table_3,
    "table 3, LA": lambda: table_3("la"),
    "table 3, BT": lambda: table_3("bt"),
    "table 3, searched": table_3_searched,
    "table 6": lambda: error_table("yearpredictionmsd", "yearpred-small", "mae_raw"),
    "table 7": lambda: error_table("ct_slices", "ct_slices"),
    "table 8": table_8,
    "table 9": table_9,
    "weights": weights,
    "table 1, targets": lambda: target_table("amazon", "amazon7i"),
    "table 2, targets": lambda: target_table("trancos", "trancos"),
    "table 6, targets": lambda: target_table("yearpredictionmsd", "yearpred-small", "mae_raw"),
    "table 7, targets": lambda: target_table("ct_slices", "ct_slices"),
}


def fill(page: str) -> str:
    """Return the text of a page with its tables up to date."""

    def table(place: re.Match[str]) -> str:
        return f"{place['head']}\n{TABLES[place['name']]()}\n\n{place['tail']}"

    return PLACE.sub(table, page)


if __name__ == "__main__":
    for file in (PAGE, APPENDIX):
        before = file.read_text(encoding="utf-8")
        after = fill(before)
        if after != before:
            file.write_text(after, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")
