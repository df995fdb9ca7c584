"""What a run answers, in sentences: against its baseline and against the paper."""

from vntransfer.display import counted
from vntransfer_lab.reports.names import Names
from vntransfer_lab.reports.report import Report, against_baseline, label_of
from vntransfer_lab.reports.statistics import VERDICTS

CLAIMS = "The figures and tables show what we found; the docs judge every claim (docs/claims.md)."

Tally = dict[str, dict[str, list[str]]]  # method -> verdict -> data sets


def lead(loaded: Report, names: Names, found: Tally) -> str:
    """Ask what the run answers, and answer in a sentence or two."""
    preset = loaded.preset
    if claim := preset.paper.get("claim"):
        said = [f"Does this claim of the paper hold: {claim}?", *paper_words(loaded)]
    elif found:
        said = [f"Which methods are better than the baseline, {names(preset.baseline)}?"]
    else:
        said = [f"How do {len(preset.methods)} methods compare?"]
    ranked = preset.baseline or not claim  # a claim about no baseline is not about the best method
    leader = _leader(loaded, names) if ranked else CLAIMS
    return " ".join(filter(None, [*said, _counts(found), leader]))


def _counts(found: Tally) -> str:
    """Say how many methods are better or worse than the baseline."""
    if not found:
        return ""
    better = sum(bool(own["better"]) and not own["worse"] for own in found.values())
    worse = sum(bool(own["worse"]) and not own["better"] for own in found.values())
    return (
        f"Of {counted(len(found), 'method')}, {better or 'none'} improved on the baseline "
        f"somewhere without being worse anywhere; {worse or 'none'} only did worse."
    )


def _leader(loaded: Report, names: Names) -> str:
    """Name the method with the best mean rank over data sets and targets."""
    sign = -1 if loaded.kind.higher_is_better else 1
    places = [
        {m: sign * own.mean for m, own in found.items() if m != "oracle"}
        for group in loaded.chosen
        for found in loaded.estimates(*group).values()
    ]
    everywhere = [m for m in loaded.preset.methods if places and all(m in own for own in places)]
    if len(everywhere) < 2:
        return ""
    ranks = {m: sum(sum(v < own[m] for v in own.values()) for own in places) for m in everywhere}
    best = min(ranks, key=ranks.__getitem__)
    return f"Best mean rank over {counted(len(places), 'target')}: {names(best)}."


def tally(loaded: Report) -> Tally:
    """Verdicts of all methods but the baseline, by data set; empty without a baseline."""
    baseline = loaded.preset.baseline
    found: Tally = {}
    for method in loaded.preset.methods if baseline else ():
        if method != baseline:
            own: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
            for group, (_, _, verdict) in against_baseline(loaded, method).items():
                own[verdict].append(label_of(*group))
            if any(own.values()):
                found[method] = own
    return found


def sentences(found: Tally) -> list[tuple[str, str]]:
    """Kind of note and sentence about the methods, those that gain first.

    A page opens notes of the kinds "good" and "bad" with "Better" and "Worse".
    """
    gains: dict[tuple[int, int], list[str]] = {}
    losses: dict[tuple[int, int], list[str]] = {}
    mixed: list[str] = []
    even: list[str] = []
    few: list[str] = []
    for method, own in found.items():
        better, worse = len(own["better"]), len(own["worse"])
        total = sum(map(len, own.values()))
        if better and worse:
            mixed.append(f"{method} (better {better}, worse {worse} of {total})")
        elif better:
            gains.setdefault((better, total), []).append(method)
        elif worse:
            losses.setdefault((worse, total), []).append(method)
        elif own["no difference"]:
            even.append(method)
        else:
            few.append(method)
    better_on, worse_on = (
        [
            f"on {n} of {counted(of, 'comparison')}: {', '.join(names)}"
            for (n, of), names in sorted(own.items())[::-1]
        ]
        for own in (gains, losses)
    )
    said = [
        ("good", "than the baseline and nowhere worse: {}.", better_on),
        ("bad", "than the baseline and nowhere better: {}.", worse_on),
        ("neutral", "Better than the baseline in some comparisons and worse in others: {}.", mixed),
        ("neutral", "No significant difference from the baseline: {}.", even),
        ("warning", "Too few runs for a test against the baseline: {}.", few),
    ]
    return [(kind, text.format("; ".join(named))) for kind, text, named in said if named]


def paper_words(loaded: Report) -> list[str]:
    """Compare the numbers that the paper prints with ours, target by target."""
    preset, metric = loaded.preset, loaded.kind.metric
    best = max if loaded.kind.higher_is_better else min
    pairs: list[tuple[float, float]] = []
    same_best: list[bool] = []
    for data, condition in loaded.chosen:
        name = metric if preset.paper_values(data, metric) else f"{metric}_raw"
        for target, theirs in preset.paper_values(data, name).items():
            found = loaded.estimates(data, condition, name).get(target, {})
            ours = {m: found[m].mean for m in theirs if m in found}
            pairs += [(ours[m], theirs[m]) for m in ours]
            if len(ours) > 1:
                winners = [best(ours, key=values.__getitem__) for values in (ours, theirs)]
                same_best.append(winners[0] == winners[1])
    said = []
    if same_best:
        said.append(
            f"The method that is best in the paper is best here on {sum(same_best)} of "
            f"{counted(len(same_best), 'target')}."
        )
    if pairs:
        close = sum(abs(a - b) < 0.1 * abs(b) for a, b in pairs)
        source = preset.paper.get("source", "its tables")
        said.append(
            f"{close} of our {counted(len(pairs), 'value')} are within 10 % of the paper's "
            f"({source})."
        )
    return said
