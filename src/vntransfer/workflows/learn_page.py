"""What was learned and forgotten, as a page."""

from collections.abc import Iterator, Mapping
from itertools import islice

from vntransfer._version import __version__
from vntransfer.display import counted, percent, rounded, short
from vntransfer.pages import Axis, Heatmap, Lines, Page, Series
from vntransfer.pages.table import Value, aligned
from vntransfer.relations.result import color_end
from vntransfer.workflows.continual_model import ContinualModel

NOTES = 20
"""Notes that are shown; more are counted."""

SCORES = {
    "RA": "after all tasks (RA)",
    "LA": "just after learning (LA)",
    "BT": "change since then (BT)",
    "FT": "before learning (FT)",
}
"""Headings of the scores."""

TITLES = {
    "sgd": "plain training",
    "covp": "projected training",
    "closed_form": "ridge on random features",
    "closed_form_covp": "ridge on random features and projected training",
}
"""What methods are called on the page; others by the names of their papers."""


def make_page(models: Mapping[str, ContinualModel], method: str) -> Page:
    """Show curves and summaries of methods that learned the same tasks, and one's matrix."""
    own = models[method]
    page = Page(
        f"{own.response}: {counted(len(own.names), 'task')}, one after another",
        lead=verdict(own),
        footer={"made by": f"vntransfer {__version__}", "method": method},
    )
    part = page.section("What is kept")
    part.text(f"The method is {title(method)}.", *_compared(models, method))
    curve, tasks = own.curve(), len(own.names)
    part.figure(
        Lines(
            [Series(title(n), range(len(curve)), m.curve().tolist()) for n, m in models.items()],
            x=Axis("tasks learned since", whole=True),
            y=Axis(own.metric),
        ),
        "Forgetting",
        f"Mean over the same {counted(tasks - len(curve) + 1, 'task')} at every step: those with "
        f"{len(curve) - 1} or more after them.",
    )
    part.figure(
        Heatmap(
            list(own.names),
            list(own.names),
            own.matrix,
            row_label="after learning",
            column_label="scored on",
            label=own.metric,
            high=color_end(own.matrix),  # one outlier must not pale the rest
        ),
        f"{own.metric.capitalize()} on each task after each task",
        f"Held-out rows, {title(method)}. Row: the task learned last; column: the task scored.",
    )
    every = iter(aligned([one.scores()[key] for one in models.values() for key in SCORES]))
    scores: list[list[Value]] = [[title(name), *islice(every, len(SCORES))] for name in models]
    part.table(
        ("method", *SCORES.values()),
        scores,
        "Scores of the methods",
        [
            f"Mean {own.metric} on held-out rows of all tasks. A change "
            f"{'below' if own.classes else 'above'} zero is forgetting.",
            f"Before learning: on each task just before it was learned, minus an untrained "
            f"network; {'above' if own.classes else 'below'} zero, earlier tasks helped.",
        ],
    )
    part = page.section("Columns")
    for note in own.notes[:NOTES]:
        part.note(f"{note}.")
    if len(own.notes) > NOTES:
        part.text(f"and {len(own.notes) - NOTES:,} more notes")
    listed = own.encoder.summary()
    head = ("column", "kind", "treatment")
    part.table(head, listed, "Column handling")
    page.section("How it was done").text(
        "Tasks are learned one after another; rows of earlier tasks are not read again. A share of "
        "the rows of each task is held out: no method learns from them, and all scores are "
        "measured on them, for every task after every task."
    )
    return page


def _compared(models: Mapping[str, ContinualModel], method: str) -> Iterator[str]:
    """Say what the other methods reach and forget."""
    for name, other in models.items():
        if name != method:
            said = _reached(other)
            yield f"In comparison, {title(name)} ends with {said[0]} and {said[1]}."


def _reached(own: ContinualModel) -> tuple[str, str]:
    """Return the final score and what was forgotten, in words."""
    end, lost = own.scores()["RA"], own.forgetting()
    error = percent(end) if own.classes else rounded(end)
    much = f"{rounded(100 * lost, 2)} points" if own.classes else rounded(lost, 2)
    kept = f"forgot {much} per task" if lost > 0 else "forgot nothing on average"
    return f"{'an' if own.classes else 'a'} {own.metric} of {error}", kept


def title(method: str) -> str:
    """Name a method in words."""
    return TITLES.get(method, method.upper().replace("_", " "))


def verdict(own: ContinualModel) -> str:
    """Say in a sentence how well the tasks are solved in the end and what was forgotten."""
    reached, kept = _reached(own)
    return (
        f"After learning {counted(len(own.names), 'task')} in turn, one model predicts "
        f"{short(own.response)} with {reached} (mean over held-out rows of all tasks) "
        f"and {kept}."
    )
