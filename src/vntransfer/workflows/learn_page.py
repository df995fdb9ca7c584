"""What was learned and forgotten, as a page."""

from collections.abc import Mapping

from vntransfer._version import __version__
from vntransfer.display import counted, rounded, short
from vntransfer.pages import Axis, Heatmap, Lines, Page, Series, TableCell
from vntransfer.pages.table import Value
from vntransfer.workflows.continual_model import ContinualModel

ROWS = 25
"""Rows from which on a table is folded."""

SCORES = {
    "RA": "after all tasks (RA)",
    "LA": "just after learning (LA)",
    "BT": "change since then (BT)",
    "FT": "gain before learning (FT)",
}
"""Headings of the scores."""


def make_page(models: Mapping[str, ContinualModel], method: str) -> Page:
    """Show curves and summaries of methods that learned the same tasks, and one's matrix."""
    own = models[method]
    page = Page(
        f"{own.response}: {counted(len(own.names), 'task')}, one after another",
        lead=verdict(own),
        footer={"made by": f"vntransfer {__version__}", "method": method},
    )
    part = page.section("What is kept")
    curve, tasks = own.curve(), len(own.names)
    part.figure(
        Lines(
            [Series(n, list(range(len(curve))), m.curve().tolist()) for n, m in models.items()],
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
        ),
        f"{own.metric.capitalize()} on each task after each task",
        f"Held-out rows, method {method}. Row: the task learned last; column: the task scored.",
    )
    scores: list[list[Value]] = [
        [name, *(TableCell(rounded(v), v) for key in SCORES for v in [one.scores()[key]])]
        for name, one in models.items()
    ]
    part.table(
        ("method", *SCORES.values()),
        scores,
        "Scores of the methods",
        [
            f"Mean {own.metric} on held-out rows of all tasks. A change "
            f"{'below' if own.classes else 'above'} zero is forgetting.",
            "Gain before learning: on each task just before it was learned, compared with an "
            "untrained network.",
        ],
    )
    part = page.section("Columns")
    for note in own.notes:
        part.note(note)
    listed = own.encoder.summary()
    head = ("column", "kind", "treatment")
    part.table(head, listed, "Column handling", fold=len(listed) > ROWS)
    return page


def verdict(own: ContinualModel) -> str:
    """Say in a sentence how well the tasks are solved in the end and what was forgotten."""
    scores, unit = own.scores(), "" if own.classes else f" {short(own.response)}"
    lost = -scores["BT"] if own.classes else scores["BT"]
    kept = f"and forgot {rounded(lost, 2)}{unit} per task on the way"
    return (
        f"After learning {counted(len(own.names), 'task')} in turn, one network has a mean "
        f"{own.metric} of {rounded(scores['RA'])}{unit} on held-out rows of all of them "
        f"{kept if lost > 0 else 'and forgot nothing on average'}."
    )
