"""``vnt learn``: learn the tasks of a table one after another."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli.common import (
    Category,
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
    from vntransfer.workflows.continual_model import ContinualModel


@with_read_options
def command(
    file: File,
    task: Annotated[str, typer.Option("--task", help="Column: which task a row is of.")],
    response: Response,
    method: Annotated[
        str, typer.Option(help="covp, sgd, ewc, si, gpm, er, derpp, rsp, ...: see the docs.")
    ] = "covp",
    compare: Annotated[
        str, typer.Option(help="Methods to learn with beside it, by commas; '' for none.")
    ] = "sgd",
    epochs: Annotated[int, typer.Option(min=1, help="Passes over each task.")] = 1,
    kind: Annotated[
        str, typer.Option(help="regression, classification, or auto: classes if it is text.")
    ] = "auto",
    order: Annotated[str, typer.Option(help="Of the tasks: appearance or sorted.")] = "appearance",
    held_out: Annotated[float, typer.Option(help="Share of each task's rows to score.")] = 0.25,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 0.01,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per step.")] = 4,
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    save: Save = None,
    out: Out = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    *,
    read_options: "ReadOptions",
) -> None:
    """Learn tasks in their order with one network, and see what is forgotten."""
    from vntransfer.cli import common

    with plain_errors():
        from vntransfer.storage.places import PAGES, check_file, check_place
        from vntransfer.tables.files import expand
        from vntransfer.tables.problem import TableColumns
        from vntransfer.workflows.learn import check_options, learn_tasks
        from vntransfer.workflows.learn_page import make_page

        names = dict.fromkeys((method, *(split(compare) or ())))
        for name in names:
            check_options(name, kind, order, held_out)
        if out is not None:
            check_file("out", out, PAGES, expand(file), save, overwrite=overwrite)
        if save is not None:
            check_place(save)
        columns = TableColumns(task, response, split(features), drop or (), category or ())
        frame, _ = columns.read(file, read_options)
        models: dict[str, ContinualModel] = {}
        with progress() as report:
            for name in names:
                models[name] = learn_tasks(
                    frame,
                    task=task,
                    response=response,
                    method=name,
                    kind=kind,  # type: ignore[arg-type]  # checked there
                    order=order,  # type: ignore[arg-type]
                    epochs=epochs,
                    features=split(features),
                    category=category or (),
                    held_out=held_out,
                    lr=lr,
                    batch_size=batch_size,
                    random_state=seed,
                    progress=report,
                )
        own = models[method]
        if save is not None:
            own.save(save)
        if out is not None:
            make_page(models, method).write(out, overwrite=overwrite)
        screen = common.console()
        common.print_columns(screen, own.encoder.summary(), own.notes)
        show(models, method, screen)
        common.print_outputs(screen, save, out)


def show(models: "dict[str, ContinualModel]", method: str, screen: Any) -> None:
    """Print the matrix of a method, and curves and summaries of all."""
    from vntransfer.cli.common import table

    own = models[method]
    head = (f"after \\ on ({own.metric})", *own.names)
    rows = [
        (name, *(f"{value:.4g}" for value in line))
        for name, line in zip(own.names, own.matrix, strict=True)
    ]
    screen.print(table(f"{method}: held-out rows of each task", head, rows))
    lags = [str(lag) for lag in range(len(own.names))]
    curves = [(name, *(f"{v:.4g}" for v in one.curve())) for name, one in models.items()]
    screen.print(
        table(f"Forgetting: mean {own.metric}, so many tasks later", ("method", *lags), curves)
    )
    keys = ("RA", "LA", "BT", "FT")
    lines = [(n, *(f"{one.scores()[key]:.4g}" for key in keys)) for n, one in models.items()]
    screen.print(table("In the end", ("method", *keys), lines))
    sign = "below" if own.classes else "above"
    screen.print(
        f"RA: mean {own.metric} on all tasks at the end; LA: on each just after it was learned; "
        f"BT = RA - LA, {sign} zero is forgetting; FT: on each just before, beyond an untrained "
        f"network."
    )
