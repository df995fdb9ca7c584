"""``vnt learn``: learn the tasks of a table one after another."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli import common
from vntransfer.errors import ArgumentError

if TYPE_CHECKING:
    from vntransfer.tables.options import ReadOptions
    from vntransfer.workflows.continual_model import ContinualModel


@common.reads_tables
def command(
    file: common.File,
    task: Annotated[str | None, typer.Option(help="Column with the task of each row.")] = None,
    response: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto (the better of closed_form and covp on held-out rows), closed_form, "
            "closed_form_covp, covp, sgd, ewc, si, gpm, er, derpp, rsp, ...: see the docs."
        ),
    ] = "auto",
    compare: Annotated[
        str, typer.Option(help="Comma-separated methods to compare with; '' for none.")
    ] = "sgd",
    epochs: Annotated[int, typer.Option(min=1, metavar="N", help="Passes over each task.")] = 1,
    kind: Annotated[
        str, typer.Option(help="regression, classification, or auto (classes if text).")
    ] = "auto",
    order: Annotated[
        str, typer.Option(help="Order of the tasks: appearance or sorted.")
    ] = "appearance",
    held_out: Annotated[float, typer.Option(help="Share of each task's rows to hold out.")] = 0.25,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 0.01,
    batch_size: Annotated[int, typer.Option(min=1, metavar="N", help="Rows per step.")] = 4,
    features: common.Features = None,
    drop: common.Drop = None,
    category: common.Category = None,
    update: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Saved model to update with FILE. Replaced unless --save is given.",
        ),
    ] = None,
    save: common.Save = None,
    out: common.Out = None,
    overwrite: common.Overwrite = False,
    seed: common.Seed = 0,
    verbose: common.Verbose = False,
    *,
    read_options: "ReadOptions",
) -> None:
    """Learn tasks one after another, and measure forgetting."""
    steps: dict[str, Any] = {"epochs": epochs, "lr": lr, "batch_size": batch_size}
    if update is not None:
        given: dict[str, Any] = {"task": task, "response": response, "features": features}
        given |= {"drop": drop, "category": category, "out": out}
        _refuse_with_update(given)
        _update(file, update, save or update, steps, read_options, verbose=verbose)
        return
    from vntransfer.tables.problem import TableColumns
    from vntransfer.workflows.learn import check_options, learn_tasks
    from vntransfer.workflows.learn_page import make_page

    names = dict.fromkeys((method, *(common.split(compare) or ())))
    for name in names:
        check_options(name, kind, order, held_out)
    task, response = _named("task", task), _named("response", response)
    common.check_outputs([file], out, save, overwrite=overwrite)
    columns = TableColumns(task, response, common.split(features), drop or (), category or ())
    frame, _ = columns.read(file, read_options)
    models: dict[str, ContinualModel] = {}
    with common.progress() as report:
        for name in names:
            model = learn_tasks(
                frame,
                task=task,
                response=response,
                method=name,
                kind=kind,  # type: ignore[arg-type]  # checked there
                order=order,  # type: ignore[arg-type]
                features=columns.features,
                category=columns.category,
                held_out=held_out,
                random_state=seed,
                progress=report,
                **steps,
            )
            models.setdefault(model.method, model)
    own = next(iter(models.values()))
    if save is not None:
        own.save(save)
    if out is not None:
        make_page(models, own.method).write(out, overwrite=overwrite)
    screen = common.console()
    common.print_columns(screen, own.encoder.summary())
    common.print_notes(screen, own.notes, verbose=verbose)
    show(models, own.method, screen)
    common.print_outputs(screen, save, out)


def _named(what: str, column: str | None) -> str:
    """Return the name of a column; only an update may omit it."""
    if column is None:
        raise ArgumentError(f"{what}: no column given; add --{what} COLUMN")
    return column


def _refuse_with_update(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value:
            raise ArgumentError(
                f"{name}: got {str(value)!r} with --update, but the model has its own columns and "
                f"an update writes no page; omit --{name}"
            )


def _update(
    file: Path,
    folder: Path,
    save: Path,
    steps: Mapping[str, Any],
    read_options: "ReadOptions",
    *,
    verbose: bool,
) -> None:
    """Add rows to a saved model, and print how well it predicted them."""
    from vntransfer.workflows.learn_update import update_tasks
    from vntransfer.workflows.load import load

    common.check_outputs([file], None, save)
    model = load(folder)
    updated = update_tasks(model, file, read_options=read_options, **steps)
    updated.save(save)
    screen = common.console()
    common.print_notes(screen, updated.notes[len(model.notes) :], verbose=verbose)
    common.print_outputs(screen, save, None)


def _texts(values: "list[float]") -> list[str]:
    """Write numbers with the same number of decimals."""
    from vntransfer.pages.table import aligned

    return [cell.text for cell in aligned(values) if cell is not None]


def show(models: "dict[str, ContinualModel]", method: str, screen: Any) -> None:
    """Print the answer, the matrix of a method, and curves and summaries of all."""
    from vntransfer.workflows.learn_page import verdict

    own = models[method]
    screen.print(f"\n{verdict(own)}")
    head = (f"after \\ on ({own.metric})", *own.names)
    rows = zip(own.names, *map(_texts, own.matrix.T.tolist()), strict=True)
    screen.print(common.table(f"{method}: held-out rows of each task", head, rows))
    lags = [str(lag) for lag in range(len(own.curve()))]
    curves = [(name, *_texts(one.curve().tolist())) for name, one in models.items()]
    screen.print(
        common.table(
            f"Forgetting: {own.metric} of the first half of the tasks, by number of later tasks",
            ("method", *lags),
            curves,
        )
    )
    keys = ("RA", "LA", "BT", "FT")
    every = iter(_texts([one.scores()[key] for one in models.values() for key in keys]))
    lines = [(name, *islice(every, len(keys))) for name in models]
    screen.print(common.table("After all tasks", ("method", *keys), lines))
    sign = "below" if own.classes else "above"
    screen.print(
        f"RA: mean {own.metric} on all tasks at the end; LA: on each just after it was learned; "
        f"BT = RA - LA, forgetting if {sign} zero; FT: on each just before, minus that of an "
        f"untrained network."
    )
