"""``vnt adapt``: train on labeled places for one without labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli.common import (
    Category,
    Domain,
    Drop,
    Features,
    Out,
    Overwrite,
    Response,
    Save,
    Seed,
    Verbose,
    plain_errors,
    progress,
    split,
    with_read_options,
)

if TYPE_CHECKING:
    from vntransfer.tables.options import ReadOptions
    from vntransfer.workflows.table_model import TableModel
    from vntransfer.workflows.target_outcome import TargetOutcome


@with_read_options
def command(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="csv or parquet files, or patterns.")
    ],
    domain: Domain,
    response: Response,
    target: Annotated[
        list[str], typer.Option("--target", help="A place to predict for; may be repeated.")
    ],
    method: Annotated[
        str,
        typer.Option(
            help="auto, ridge, boosting, weighted, source_only, align, ...; see the docs."
        ),
    ] = "auto",
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    use_target_labels: Annotated[
        bool,
        typer.Option("--use-target-labels", help="Labeled rows of the target help as a source."),
    ] = False,
    save: Save = None,
    out: Out = None,
    overwrite: Overwrite = False,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Judge boosting and source-only too.")
    ] = True,
    transform: Annotated[
        str, typer.Option(help="Scale of the response: auto, log or none; errors stay in its unit.")
    ] = "auto",
    seed: Seed = 0,
    max_rows: Annotated[
        int,
        typer.Option("--max-rows", min=10, metavar="N", help="Rows of each source to learn from."),
    ] = 20_000,
    verbose: Verbose = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", help="Read in blocks (method closed_form): 'local', or 'dask' for workers."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes of --engine dask.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of a Dask cluster; default own.")
    ] = None,
    *,
    read_options: "ReadOptions",
) -> None:
    """Train on labeled places of a table for one without labels.

    Every labeled place is held out once, to choose methods and to estimate their errors. No labels
    from the target are used.
    """
    from vntransfer.cli import common

    with plain_errors():
        from vntransfer.storage.places import PAGES, check_file, check_place
        from vntransfer.tables.files import expand
        from vntransfer.tables.problem import TableColumns, read_problem
        from vntransfer.workflows.adapt import fit_problem
        from vntransfer.workflows.adapt_streamed import Streaming, adapt_streamed
        from vntransfer.workflows.response_transform import check_transform, not_streamed
        from vntransfer.workflows.row_sample import sample_rows
        from vntransfer.workflows.target_fit import COMPARED, check_method

        check_method(method)
        check_transform(transform)
        if out is not None:
            check_file("out", out, PAGES, expand(files), save, overwrite=overwrite)
        if save is not None:
            check_place(save)
        columns = TableColumns(domain, response, split(features), drop or (), category or ())
        screen = common.console()
        streaming = Streaming(engine, workers, scheduler)  # type: ignore[arg-type]
        if streaming.applies(files, method):
            not_streamed(transform)
            with progress() as moved:
                model = adapt_streamed(
                    files,
                    columns,
                    target,
                    use_target_labels=use_target_labels,
                    options=read_options,
                    streaming=streaming,
                    random_state=seed,
                    progress=moved,
                )
            common.print_columns(screen, model.encoder.summary(), ())
            common.print_notes(screen, model.details, verbose=verbose)
            _finish(model, save, out, overwrite, screen)
            return
        problem = read_problem(
            files,
            columns,
            targets=target,
            use_target_labels=use_target_labels,
            options=read_options,
        )
        problem = sample_rows(problem, max_rows, seed)
        common.print_columns(screen, problem.encoder.summary(), ())
        common.print_notes(screen, problem.notes, verbose=verbose)
        with progress() as moved:
            model = fit_problem(
                problem,
                method=method,
                compare=COMPARED if compare else (),
                transform=transform,  # type: ignore[arg-type]  # checked above
                random_state=seed,
                progress=moved,
            )
        _finish(model, save, out, overwrite, screen)


def _finish(
    model: "TableModel", save: Path | None, out: Path | None, overwrite: bool, screen: Any
) -> None:
    """Write the requested files and print the result."""
    from vntransfer.cli.common import print_outputs

    if save is not None:
        model.save(save)
    if out is not None:
        model.to_page(out, overwrite=overwrite)
    for outcome in model.outcomes.values():
        show(outcome, model, screen)
    print_outputs(screen, save, out)


def show(outcome: "TargetOutcome", model: "TableModel", screen: Any) -> None:
    """Print the result for one target: the answer, what to be careful about, the numbers."""
    from vntransfer.cli.common import table

    screen.print(f"\nTarget {outcome.target}: {outcome.rows} rows, method {outcome.method}")
    for sentence in outcome.answer(model.names[1]):
        screen.print(sentence, style=None if sentence.startswith("Expected") else "yellow")
    if reach := model.reach(outcome.target):
        screen.print(f"90 % of held-out rows lie within {reach} of their prediction.")
    screen.print(outcome.labels_used())
    for sentence in outcome.cautions():
        screen.print(f"Warning: {sentence}", style="yellow")
    for sentence in filter(None, (outcome.transform.reason, outcome.reason)):
        screen.print(sentence)
    if outcome.evidence.weighting():
        screen.print(outcome.weights_text())
    counts, rows = outcome.evidence.counts(), []
    for name, weight in sorted(outcome.source_weights.items(), key=lambda pair: -pair[1]):
        own = outcome.errors.get(outcome.method, {}).get(name)
        error = ("-", "-") if own is None else (f"{own:.4g}", f"{counts[name]:.0%}")
        rows.append((name, f"{weight:.3f}", *error))
    head = ("source", "weight", "error when held out", "counts in expected error")
    screen.print(table("Weights of the sources", head, rows))
    if not outcome.errors:
        return
    lines = []
    for name in outcome.evidence.ranked():
        mean, spread = outcome.expected(name)
        share = outcome.shares.get(name)
        shown = "-" if share is None else f"{share:.0%}"
        lines.append((name, f"{mean:.4g}", f"{spread:.2g}", shown))
    title = "Mean absolute error on sources that were held out (leave-one-source-out)"
    screen.print(table(title, ("method", "error", "± s.e.", "share"), lines))
