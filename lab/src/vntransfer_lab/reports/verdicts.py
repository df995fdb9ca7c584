"""A report in a few sentences: who is better than the baseline, and what the paper says."""

from typing import NamedTuple

from vntransfer_lab.reports.report import Report, against_baseline, label_of
from vntransfer_lab.reports.statistics import VERDICTS, estimate

Tally = dict[str, dict[str, list[str]]]  # method -> verdict -> data sets


def tally(loaded: Report) -> Tally:
    """Verdicts of all methods but the baseline, by data set; empty without a baseline."""
    baseline = loaded.preset.baseline
    if not baseline:
        return {}
    found: Tally = {}
    for method in loaded.preset.methods:
        if method != baseline:
            own: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
            for group, (_, _, verdict) in against_baseline(loaded, method).items():
                own[verdict].append(label_of(*group))
            if any(own.values()):
                found[method] = own
    return found


def sentences(found: Tally, baseline: str) -> list[tuple[str, str]]:
    """Kind of note and sentence about the methods, those that gain first.

    Examples
    --------
    >>> none = {"better": [], "worse": [], "no difference": [], "too few runs": []}
    >>> found = {"mdd": {**none, "better": ["bike", "pol"]}, "darn": {**none, "worse": ["pol"]}}
    >>> for kind, text in sentences(found, "source_only"):
    ...     print(kind, text)
    good than source_only, and nowhere worse: mdd (2 of 2 data sets).
    bad than source_only, and nowhere better: darn (1 of 1 data sets).
    """
    gains: list[str] = []
    losses: list[str] = []
    mixed: list[str] = []
    even: list[str] = []
    few: list[str] = []
    for method, own in found.items():
        better, worse = len(own["better"]), len(own["worse"])
        total = sum(map(len, own.values()))
        if better and worse:
            mixed.append(f"{method} (better {better}, worse {worse} of {total})")
        elif better:
            gains.append(f"{method} ({better} of {total} data sets)")
        elif worse:
            losses.append(f"{method} ({worse} of {total} data sets)")
        elif own["no difference"]:
            even.append(method)
        else:
            few.append(method)
    said = [
        ("good", f"than {baseline}, and nowhere worse: {{}}.", gains),
        ("bad", f"than {baseline}, and nowhere better: {{}}.", losses),
        ("neutral", f"Better than {baseline} on some data and worse on other: {{}}.", mixed),
        ("neutral", f"No significant difference to {baseline}: {{}}.", even),
        ("warning", f"Too few runs for a test against {baseline}: {{}}.", few),
    ]
    return [(kind, text.format(", ".join(named))) for kind, text, named in said if named]


class Agreement(NamedTuple):
    """How our numbers compare with the paper's, value by value and target by target.

    ``rows`` counts the targets where both give at least two methods, and ``rank`` is the mean
    Spearman correlation of the order of the methods, None without such targets.
    """

    pairs: int
    closer_than_tenth: int
    better: int
    rows: int
    same_best: int
    rank: float | None


def agreement(loaded: Report) -> Agreement | None:
    """Compare with the paper's numbers of the experiment's metrics; None when there are none."""
    from scipy.stats import spearmanr

    pairs: list[tuple[float, float]] = []
    ranks: list[float] = []
    rows = same = 0
    higher = loaded.kind.higher_is_better
    best = max if higher else min
    for data, condition in loaded.chosen:
        for target, methods in loaded.preset.paper.get("values", {}).get(data, {}).items():
            metrics = {name for values in methods.values() for name in values}
            metric = (
                loaded.kind.metric if loaded.kind.metric in metrics else f"{loaded.kind.metric}_raw"
            )
            paper = {m: v[metric] for m, v in methods.items() if metric in v}
            if not paper:
                continue
            values = loaded.values(data, condition, metric)
            ours = {
                m: estimate(list(values[m][target].values())).mean
                for m in paper
                if target in values.get(m, {})
            }
            pairs += [(ours[m], paper[m]) for m in ours]
            if len(ours) > 1:
                rows += 1
                theirs = {m: paper[m] for m in ours}
                same += best(ours, key=ours.__getitem__) == best(theirs, key=theirs.__getitem__)
                if len(ours) > 2 and len(set(ours.values())) > 1 and len(set(theirs.values())) > 1:
                    ranks.append(
                        float(spearmanr(list(ours.values()), list(theirs.values())).statistic)
                    )
    if not pairs:
        return None
    return Agreement(
        pairs=len(pairs),
        closer_than_tenth=sum(abs(a - b) < 0.1 * abs(b) for a, b in pairs),
        better=sum(a > b if higher else a < b for a, b in pairs),
        rows=rows,
        same_best=same,
        rank=sum(ranks) / len(ranks) if ranks else None,
    )


def paper_words(loaded: Report) -> list[str]:
    """Sentences about the paper's claim and its numbers beside ours."""
    paper = loaded.preset.paper
    said = [f"Claim: {paper['claim']}."] if paper.get("claim") else []
    found = agreement(loaded)
    if found is None:
        if said:
            said.append("The paper prints no numbers that can be set beside ours here.")
        return said
    said.append(
        f"Of {found.pairs} values that the paper prints ({paper.get('source', 'its tables')}), "
        f"{found.closer_than_tenth} of ours are within a tenth of it and {found.better} are better."
    )
    if found.rows:
        order = ""
        if found.rank is not None:
            order = f"; the order of the methods has a mean rank correlation of {found.rank:.2f}"
        said.append(
            f"The method that is best in the paper is best here on {found.same_best} of "
            f"{found.rows} targets{order}."
        )
    return said
