"""What was learned and forgotten, as a page."""

from collections.abc import Mapping

from vntransfer._version import __version__
from vntransfer.pages import Axis, Heatmap, Lines, Page, Series
from vntransfer.workflows.continual_model import ContinualModel


def make_page(models: Mapping[str, ContinualModel], method: str) -> Page:
    """Show curves and summaries of methods that learned the same tasks, and one's matrix."""
    own = models[method]
    page = Page(
        f"{own.response}: {len(own.names)} tasks, one after another",
        lead=f"One network learned the tasks in turn; the {own.metric} is that on held-out rows.",
        footer={"made by": f"vntransfer {__version__}", "method": method},
    )
    part = page.section("What is kept")
    part.figure(
        Heatmap(
            list(own.names),
            list(own.names),
            own.matrix,
            row_label="after learning",
            column_label="task",
            label=own.metric,
        ),
        f"{own.metric.capitalize()} of {method}",
        "Row: the task that was learned last; column: the task whose held-out rows are scored.",
    )
    lags = list(range(len(own.names)))
    curves = [Series(name, lags, one.curve().tolist()) for name, one in models.items()]
    part.figure(
        Lines(curves, x=Axis("tasks since it was learned"), y=Axis(own.metric)),
        "Forgetting",
        "Mean over tasks.",
    )
    keys = ("RA", "LA", "BT", "FT")
    part.table(
        ("method", *keys),
        [(name, *(one.scores()[key] for key in keys)) for name, one in models.items()],
        "In the end",
        [
            "RA: mean over all tasks at the end. LA: on each task just after it was learned.",
            f"BT = RA - LA: {'below' if own.classes else 'above'} zero is forgetting.",
            "FT: on each task just before it was learned, beyond an untrained network.",
        ],
    )
    part = page.section("Columns")
    for note in own.notes:
        part.note(note)
    part.table(("column", "kind", "treatment"), own.encoder.summary(), "What became of them")
    return page
