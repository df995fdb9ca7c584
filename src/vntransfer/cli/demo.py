"""``vnt demo``: all commands on the embedded table, in less than a minute of computing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vntransfer.cli.common import Overwrite, Seed, console, plain_errors, progress

if TYPE_CHECKING:
    from vntransfer.pages import Page
    from vntransfer.relations import Relation

TARGET = "Saltby"
"""The town of the embedded table whose prices were withheld."""


def command(
    out: Annotated[Path, typer.Option(help="Folder for pages, model and predictions.")] = Path(
        "vnt-demo"
    ),
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Try all commands on an embedded table of houses in seven towns.

    Six towns have prices, Saltby has none. The demo shows which towns behave
    alike, predicts prices in Saltby, and measures how much a network forgets
    when it learns one town after another. The withheld prices are embedded as
    well, so it also compares expected and actual error.
    """
    with plain_errors():
        from vntransfer.storage.places import PAGES, TABLES, check_file, check_place

        for name in ("relate.html", "adapt.html", "learn.html"):
            check_file("out", out / name, PAGES, overwrite=overwrite)
        check_file("out", out / "predicted.csv", TABLES, overwrite=overwrite)
        check_place(out / "model")
        screen = console()
        screen.rule("1. Relate: which towns behave alike?", align="left")
        pages = [_relate(seed).to_page(out / "relate.html", overwrite=overwrite)]
        screen.rule(f"2. Adapt: what do houses in {TARGET} cost?", align="left")
        pages.append(_adapt_and_predict(out, overwrite, seed))
        screen.rule("4. Learn: one network, town after town", align="left")
        pages.append(_learn(seed).write(out / "learn.html", overwrite=overwrite))
        screen.rule("Pages", align="left")
        for page in pages:
            screen.print(str(page.resolve()))


def _relate(seed: int) -> "Relation":
    from vntransfer.cli.relate import show
    from vntransfer.tables.example import example_table
    from vntransfer.workflows.relate import relate

    with progress() as report:
        found = relate(
            example_table(), domain="town", response="price", random_state=seed, progress=report
        )
    show(found, console(), [TARGET])
    return found


def _adapt_and_predict(out: Path, overwrite: bool, seed: int) -> Path:
    from vntransfer.cli.adapt import show
    from vntransfer.display import percent
    from vntransfer.tables.example import example_table
    from vntransfer.workflows.adapt import adapt
    from vntransfer.workflows.predict import WriteOptions, predict_file

    with progress() as moved:
        model = adapt(
            example_table(),
            domain="town",
            response="price",
            target=TARGET,
            random_state=seed,
            progress=moved,
        )
    screen = console()
    outcome = model.outcomes[TARGET]
    show(outcome, model, screen)
    model.save(out / "model")
    screen.rule(f"3. Predict: the withheld prices of {TARGET}", align="left")
    answers = example_table("answers")
    written = WriteOptions(overwrite=overwrite)
    done = predict_file(model, answers, out / "predicted.csv", target=TARGET, write_options=written)
    mean, spread = outcome.expected()
    screen.print(f"{done.rows} rows: {out / 'predicted.csv'}; model: {out / 'model'}")
    screen.print(
        f"Expected error {mean:.1f} ± {spread:.1f} thousand; actual {done.error:.1f}. "
        f"{percent(done.covered)} of the prices lie inside the 90 % intervals.\n"
    )
    return model.to_page(out / "adapt.html", overwrite=overwrite)


def _learn(seed: int) -> "Page":
    from vntransfer.cli.learn import show
    from vntransfer.tables.example import example_table
    from vntransfer.workflows.continual_model import ContinualModel
    from vntransfer.workflows.learn import learn_tasks
    from vntransfer.workflows.learn_page import make_page

    models: dict[str, ContinualModel] = {}
    with progress() as report:
        for method in ("covp", "sgd"):
            models[method] = learn_tasks(
                example_table(),
                task="town",
                response="price",
                method=method,
                epochs=10,
                random_state=seed,
                progress=report,
            )
    show(models, "covp", console())
    return make_page(models, "covp")
