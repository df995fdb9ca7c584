"""``vnt adapt``: train on labeled places for one without labels."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli.common import (
    Category,
    Domain,
    Drop,
    Features,
    File,
    Out,
    Overwrite,
    Response,
    Save,
    Seed,
    plain_errors,
    progress,
    split,
    with_read_options,
)

if TYPE_CHECKING:
    from vntransfer.tables.options import ReadOptions
    from vntransfer.workflows.table_model import TableModel
    from vntransfer.workflows.target_fit import TargetOutcome


@with_read_options
def command(
    file: File,
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
    seed: Seed = 0,
    *,
    read_options: "ReadOptions",
) -> None:
    """Train on the labeled places of a table for a place without labels.

    Every labeled place plays the target once, so that methods can be chosen and their errors told
    without any label of the target.
    """
    from vntransfer.cli import common

    with plain_errors():
        from vntransfer.storage.places import PAGES, check_file, check_place
        from vntransfer.tables.files import expand
        from vntransfer.tables.problem import TableColumns, read_problem
        from vntransfer.workflows.adapt import fit_problem
        from vntransfer.workflows.target_fit import COMPARED, check_method, check_savable

        check_method(method)
        if out is not None:
            check_file("out", out, PAGES, expand(file), save, overwrite=overwrite)
        if save is not None:
            check_place(save)
            check_savable(method)
        problem = read_problem(
            file,
            TableColumns(domain, response, split(features), drop or (), category or ()),
            targets=target,
            use_target_labels=use_target_labels,
            options=read_options,
        )
        screen = common.console()
        found = (f"target: {line}" for line in problem.findings.lines())
        common.print_columns(screen, problem.encoder.summary(), (*problem.notes, *found))
        with progress() as moved:
            model = fit_problem(
                problem,
                method=method,
                compare=COMPARED if compare else (),
                random_state=seed,
                progress=moved,
            )
        if save is not None:
            model.save(save)
        if out is not None:
            model.to_page(out, overwrite=overwrite)
        for outcome in model.outcomes.values():
            show(outcome, model, screen)
        common.print_outputs(screen, save, out)


def show(outcome: "TargetOutcome", model: "TableModel", screen: Any) -> None:
    """Print what came out for one target."""
    from vntransfer.cli.common import table
    from vntransfer.workflows.target_fit import CONSTANT

    screen.print(f"\nTarget {outcome.target}: {outcome.rows} rows, method {outcome.method}")
    if outcome.reason:
        screen.print(outcome.reason)
    weights = sorted(outcome.source_weights.items(), key=lambda pair: -pair[1])
    rows = []
    for name, weight in weights:
        own = outcome.errors.get(outcome.method, {}).get(name)
        rows.append((name, f"{weight:.3f}", "-" if own is None else f"{own:.4g}"))
    head = ("source", "weight", "error when held out")
    screen.print(table("Weights of the sources", head, rows))
    if not outcome.errors:
        _warn(outcome, screen)
        return
    first = [outcome.method] + [name for name in (CONSTANT,) if name in outcome.errors]
    others = sorted(set(outcome.errors) - set(first), key=lambda name: outcome.expected(name)[0])
    lines = []
    for name in (first[0], *others, *first[1:]):
        mean, spread = outcome.expected(name)
        share = outcome.shares.get(name)
        shown = "-" if share is None else f"{share:.0%}"
        lines.append((name, f"{mean:.4g}", f"{spread:.2g}", shown))
    title = "Mean absolute error on sources that were held out (leave-one-source-out)"
    screen.print(table(title, ("method", "error", "± s.e.", "share"), lines))
    mean, spread = outcome.expected()
    half = model.calibrations[outcome.target].half_width(0.9)
    screen.print(
        f"Expected error at {outcome.target}: {mean:.4g} ± {spread:.2g} ({model.names[1]}, mean "
        f"absolute), if it is to the sources what they are to each other. "
        f"{outcome.labels_used()} 90 % of held-out rows, by weight, lie within ± {half:.4g}."
    )
    _warn(outcome, screen)


def _warn(outcome: "TargetOutcome", screen: Any) -> None:
    for sentence in outcome.warnings:
        screen.print(f"Warning: {sentence}.", style="yellow")
