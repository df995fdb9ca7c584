"""``vnt demo``: all commands on the embedded table, in less than a minute of computing."""

from pathlib import Path
from typing import Annotated

import typer

from vntransfer.cli import common

TARGET = "Saltby"
"""The town of the embedded table whose prices were withheld."""


def command(
    out: Annotated[Path, typer.Option(help="Folder for pages, model and predictions.")] = Path(
        "vnt-demo"
    ),
    overwrite: common.Overwrite = False,
    seed: common.Seed = 0,
) -> None:
    """Try all commands on an embedded table of houses in seven towns.

    Six towns have prices, Saltby has none. The demo shows which towns behave
    alike, predicts prices in Saltby, and measures how much a network forgets
    when it learns one town after another. The withheld prices are embedded as
    well, so it also compares expected and actual error.
    """
    with common.plain_errors():
        from vntransfer.cli.adapt import show as show_target
        from vntransfer.cli.learn import show as show_tasks
        from vntransfer.cli.relate import show as show_relation
        from vntransfer.display import percent
        from vntransfer.storage.places import PAGES, TABLES, check_file, check_place
        from vntransfer.tables.example import example_table
        from vntransfer.workflows.adapt import adapt
        from vntransfer.workflows.learn import learn_tasks
        from vntransfer.workflows.learn_page import make_page
        from vntransfer.workflows.predict import WriteOptions, predict_file
        from vntransfer.workflows.relate import relate

        predicted, folder = out / "predicted.csv", out / "model"
        pages = [out / name for name in ("relate.html", "adapt.html", "learn.html")]
        for page in pages:
            check_file("out", page, PAGES, overwrite=overwrite)
        check_file("out", predicted, TABLES, overwrite=overwrite)
        check_place(folder)
        houses, screen = example_table(), common.console()

        screen.rule("1. Relate: which towns behave alike?", align="left")
        with common.progress() as moved:
            relation = relate(
                houses, domain="town", response="price", random_state=seed, progress=moved
            )
        show_relation(relation, screen, [TARGET])
        relation.to_page(pages[0], overwrite=overwrite)

        screen.rule(f"2. Adapt: what do houses in {TARGET} cost?", align="left")
        with common.progress() as moved:
            model = adapt(
                houses,
                domain="town",
                response="price",
                target=TARGET,
                random_state=seed,
                progress=moved,
            )
        outcome = model.outcomes[TARGET]
        show_target(outcome, model, screen)
        model.save(folder)
        model.to_page(pages[1], overwrite=overwrite)

        screen.rule(f"3. Predict: the withheld prices of {TARGET}", align="left")
        written = WriteOptions(overwrite=overwrite)
        answers = example_table("answers")
        done = predict_file(model, answers, predicted, target=TARGET, write_options=written)
        mean, spread = outcome.expected()
        screen.print(f"{done.rows} rows: {predicted}; model: {folder}")
        screen.print(
            f"Expected error {mean:.1f} ± {spread:.1f} thousand; actual {done.error:.1f}. "
            f"{percent(done.covered)} of the prices lie inside the 90 % intervals.\n"
        )

        screen.rule("4. Learn: one network, town after town", align="left")
        with common.progress() as moved:
            models = {
                method: learn_tasks(
                    houses,
                    task="town",
                    response="price",
                    method=method,
                    epochs=10,
                    random_state=seed,
                    progress=moved,
                )
                for method in ("covp", "sgd")
            }
        show_tasks(models, "covp", screen)
        make_page(models, "covp").write(pages[2], overwrite=overwrite)

        screen.rule("Pages", align="left")
        for page in pages:
            screen.print(str(page.resolve()))
