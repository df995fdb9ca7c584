"""``vnt adapt``: train on labeled places for one without labels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli import common

if TYPE_CHECKING:
    from vntransfer.tables.encoder import TableEncoder
    from vntransfer.tables.notes import Note
    from vntransfer.tables.options import ReadOptions
    from vntransfer.workflows.table_model import TableModel
    from vntransfer.workflows.target_outcome import TargetOutcome


@common.reads_tables
def command(
    files: common.Files,
    domain: common.Domain,
    response: common.Response,
    target: Annotated[list[str], typer.Option(help="Place to predict for. Repeatable.")],
    method: Annotated[
        str,
        typer.Option(
            help="auto, ridge, boosting, weighted, source_only, align, ...; see the docs."
        ),
    ] = "auto",
    features: common.Features = None,
    drop: common.Drop = None,
    category: common.Category = None,
    use_target_labels: Annotated[
        bool,
        typer.Option(
            "--use-target-labels", help="Use labeled rows of the target as one more source."
        ),
    ] = False,
    save: common.Save = None,
    out: common.Out = None,
    overwrite: common.Overwrite = False,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Also evaluate boosting and source-only.")
    ] = True,
    transform: Annotated[
        str, typer.Option(help="Scale to learn the response on: auto, log or none.")
    ] = "auto",
    seed: common.Seed = 0,
    max_rows: Annotated[
        int,
        typer.Option(
            min=10, metavar="N", help="Largest number of rows of each source to learn from."
        ),
    ] = 20_000,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Worker processes.")] = 1,
    verbose: common.Verbose = False,
    engine: Annotated[
        str | None,
        typer.Option(help="Read files in blocks (closed_form only): 'local' or 'dask'."),
    ] = None,
    scheduler: common.Scheduler = None,
    *,
    read_options: "ReadOptions",
) -> None:
    """Train a model for a place without labels.

    Every labeled place is held out once, to choose methods and to estimate their errors. No labels
    from the target are used unless you ask for it.
    """
    from vntransfer.tables.problem import TableColumns
    from vntransfer.workflows.adapt import adapt_table
    from vntransfer.workflows.adapt_settings import COMPARED, AdaptSettings

    settings = AdaptSettings(
        TableColumns(domain, response, common.split(features), drop or (), category or ()),
        target,
        method,
        use_target_labels,
        compare=COMPARED if compare else (),
        transform=transform,  # type: ignore[arg-type]  # checked there
        random_state=seed,
        max_rows=max_rows,
        n_jobs=jobs,
        engine=engine,  # type: ignore[arg-type]
        scheduler=scheduler,
    )
    common.check_outputs(files, out, save, overwrite=overwrite)
    screen = common.console()

    def announce(encoder: "TableEncoder", notes: "Sequence[Note]") -> None:
        common.print_columns(screen, encoder.summary())
        common.print_notes(screen, notes, verbose=verbose)

    with common.progress() as moved:
        model = adapt_table(
            files, settings, options=read_options, progress=moved, announce=announce
        )
    if save is not None:
        model.save(save)
    if out is not None:
        model.to_page(out, overwrite=overwrite)
    for outcome in model.outcomes.values():
        show(outcome, model, screen)
    common.print_outputs(screen, save, out)


def show(outcome: "TargetOutcome", model: "TableModel", screen: Any) -> None:
    """Print the result for one target: the answer, what to be careful about, the numbers."""
    from vntransfer.display import counted, percent, plus_minus, rounded

    screen.print(f"\nTarget {outcome.target}: {counted(outcome.rows, 'row')}")
    for sentence in outcome.answer(model.names[1]):
        screen.print(sentence, style=None if sentence.startswith("Expected") else "yellow")
    if reach := model.reach(outcome.target):
        screen.print(f"90 % interval around a prediction: {reach}.")
    screen.print(outcome.labels_used())
    for sentence in outcome.cautions():
        screen.print(f"Warning: {sentence}", style="yellow")
    for sentence in filter(None, (outcome.transform.reason, outcome.reason)):
        screen.print(sentence)
    if outcome.evidence.weighting():
        screen.print(outcome.weights_text())
    counts, rows, even = outcome.evidence.counts(), [], bool(outcome.evidence.weighting())
    by_weight = sorted(outcome.source_weights.items(), key=lambda pair: -pair[1])
    for name, weight in outcome.source_weights.items() if even else by_weight:
        own = outcome.errors.get(outcome.method, {}).get(name)
        error = ("-", "-") if own is None else (rounded(own), percent(counts[name]))
        rows.append((name, *([] if even else [percent(weight)]), *error))
    weights = [] if even else ["weight"]
    head = ("source", *weights, "error when held out", "counts in expected error")
    screen.print(common.table("Sources", head, rows))
    if not outcome.errors:
        return
    lines = []
    for name in outcome.evidence.ranked():
        mean, spread = outcome.expected(name)
        share = outcome.shares.get(name)
        lines.append((name, plus_minus(mean, spread), "-" if share is None else percent(share)))
    screen.print(
        common.table("Expected error by leave-one-source-out", ("method", "error", "share"), lines)
    )
