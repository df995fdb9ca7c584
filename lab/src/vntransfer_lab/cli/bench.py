"""``vnt bench``: list, run, watch, report, retry, export, recover and verify experiments."""

import tomllib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.checks import one_of
from vntransfer.cli.common import FAILED, Overwrite, Terminated, signals_as_exit_codes, split
from vntransfer.errors import ArgumentError
from vntransfer_lab.errors import PresetError

if TYPE_CHECKING:
    from vntransfer_lab.runner.run import RunSummary

app = typer.Typer(
    help="Run experiments and report them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Run folder.")]
_Results = Annotated[Path, typer.Argument(metavar="DIR", help="Run folder or packed result.")]
_Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Worker processes. Default: one per core."
    ),
]
_Engine = Annotated[
    str,
    typer.Option(help="'local', or 'dask' for a cluster (./lab[cluster]).", metavar="NAME"),
]
_Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Address of a Dask cluster. Default: start one here."),
]


def assignments(pairs: list[str]) -> dict[str, Any]:
    """Parse ``key=value`` pairs; a value that is not TOML is text."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise PresetError(f"--set: expected key=value (got {pair!r}). Write KEY=VALUE.")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = value.strip()
    return settings


def _stoppable(folder: Path) -> AbstractContextManager[None]:
    """Print after Ctrl-C or SIGTERM that finished cells are kept."""
    return signals_as_exit_codes(
        f"stopped; finished cells are kept in {folder}. Rerun the same command to resume"
    )


def _conclude(summary: "RunSummary") -> None:
    if summary.failed:
        typer.echo(
            f"{summary.failed} cells failed; their tracebacks are in {summary.folder}. After "
            f"fixing the cause: vnt bench retry {summary.folder}",
            err=True,
        )
    typer.echo(f"{summary.done} cells are done; see: vnt bench report {summary.folder}")
    if summary.failed:
        raise typer.Exit(FAILED)


@app.command("list")
def list_presets() -> None:
    """List the presets that come with the package."""
    from vntransfer_lab.runner.preset import titles

    presets = titles()
    width = max(map(len, presets))
    for name, title in presets.items():
        typer.echo(f"{name:<{width}}  {title}")


@app.command()
def run(
    preset: Annotated[str, typer.Argument(metavar="NAME", help="Preset or .toml file.")],
    methods: Annotated[str | None, typer.Option(help="Comma-separated methods to run.")] = None,
    targets: Annotated[str | None, typer.Option(help="Comma-separated targets to run.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of seeds to run.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Setting to change. Repeatable."),
    ] = None,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
    out: Annotated[Path | None, typer.Option(help="Run folder. Default: runs/NAME.")] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Run folder or packed result to take finished cells from. Repeatable.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Start no cell after this time, such as 2h or 90m."),
    ] = None,
) -> None:
    """Run or resume an experiment.

    Finished cells are not computed again.
    """
    from vntransfer_lab.runner import run as runner
    from vntransfer_lab.runner.display import Display

    folder = out or runner.default_folder(preset)
    with _stoppable(folder), Display() as display:
        options = runner.RunOptions(engine, scheduler, reuse or (), budget, display)
        summary = runner.run(
            preset,
            methods=split(methods),
            targets=split(targets),
            seeds=seeds,
            settings=assignments(settings or []),
            out=folder,
            jobs=jobs,
            options=options,
        )
    if summary.left:
        typer.echo(
            f"--budget {budget}: time is up, {summary.left} cells were not started.\n"
            "Rerun the same command to resume."
        )
    _conclude(summary)


@app.command()
def retry(
    folder: _Folder, jobs: _Jobs = None, engine: _Engine = "local", scheduler: _Scheduler = None
) -> None:
    """Compute failed and missing cells of a run folder again."""
    from vntransfer_lab.runner import run as runner
    from vntransfer_lab.runner.display import Display

    with Display() as display, _stoppable(folder):
        options = runner.RunOptions(engine, scheduler, watcher=display)
        summary = runner.retry(folder, jobs=jobs, options=options)
    _conclude(summary)


@app.command()
def watch(
    folder: _Folder,
    once: Annotated[bool, typer.Option("--once", help="Print the progress once and exit.")] = False,
) -> None:
    """Show the progress of a run from another terminal until it ends."""
    from vntransfer_lab.runner.watch import watch as show

    try:
        show(folder, once=once)
    except KeyboardInterrupt as stop:
        if isinstance(stop, Terminated):
            raise


@app.command()
def report(
    folder: _Results,
    form: Annotated[
        str, typer.Option("--format", help="terminal, markdown, csv, or html for a page.")
    ] = "terminal",
    out: Annotated[
        Path | None, typer.Option(help="File for the page. Default: report.html in DIR.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for the figures as SVG.")] = None,
    overwrite: Overwrite = False,
    times: Annotated[bool, typer.Option("--times", help="Add the time of the cells.")] = False,
    baseline: Annotated[
        str, typer.Option(help="Method to compare with. Default: as in the preset.")
    ] = "",
    methods: Annotated[
        str, typer.Option(help="Comma-separated methods to show, besides the baseline.")
    ] = "",
) -> None:
    """Print the tables of a run, or write them as a page."""
    from vntransfer_lab.reports.report import View
    from vntransfer_lab.reports.report import report as tables
    from vntransfer_lab.reports.tables import FORMATS

    one_of("--format", form, (*FORMATS, "html"))
    view = View(baseline, split(methods) or ())
    if form == "html":
        from vntransfer_lab.reports.page import write_page

        typer.echo(write_page(folder, out, view=view, overwrite=overwrite))
    elif out is not None:
        raise ArgumentError(
            f"--out: needs --format html (got --format {form}). Redirect the output instead."
        )
    else:
        typer.echo(tables(folder, form, times=times, view=view))
    if figures is not None:
        from vntransfer_lab.reports.drawings import draw

        for path in draw(folder, figures, view, overwrite=overwrite):
            typer.echo(f"wrote {path}", err=True)


@app.command()
def export(
    folder: _Results,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Output file, .csv or .parquet.")],
    overwrite: Overwrite = False,
) -> None:
    """Write all cells and metrics of a run to one file."""
    from vntransfer_lab import export as write

    typer.echo(f"wrote {write(folder, file, overwrite=overwrite)} rows to {file}")


@app.command()
def pack(
    folder: _Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the two files.")],
    overwrite: Overwrite = False,
) -> None:
    """Pack a finished run into two small files.

    `vnt bench report` and `vnt bench verify` read them.
    """
    from vntransfer_lab import pack as write

    number = write(folder, out, overwrite=overwrite)
    typer.echo(f"packed {number} cells; see: vnt bench report {out}")


@app.command()
def recover(
    folder: _Folder, out: Annotated[Path, typer.Option(metavar="NEW", help="New run folder.")]
) -> None:
    """Copy the intact cells of a damaged run folder into a new one."""
    from vntransfer_lab.runner.store import recover as copy

    typer.echo(f"copied {copy(folder, out)} cells; rerun the command of the run with --out {out}")


@app.command()
def verify(
    folder: _Results,
    cells: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of cells, drawn at random.")
    ] = 3,
    data: Annotated[str, typer.Option(help="Comma-separated data sets to draw from.")] = "",
    targets: Annotated[
        str, typer.Option(help="Comma-separated targets (streams) to draw from.")
    ] = "",
    methods: Annotated[str, typer.Option(help="Comma-separated methods to draw from.")] = "",
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the draw.")] = 0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SHARE",
            help="Largest relative difference that counts as equal. Default: 0.03.",
        ),
    ] = None,
    jobs: _Jobs = None,
) -> None:
    """Recompute some cells of a run or packed result, and compare.

    On a processor like that of the run, all numbers agree to the last digit.
    Other processors add in another order, and training amplifies the
    difference. The exit code is 3 if a metric differs by more than the
    tolerance and by more than three standard deviations over the run's seeds.
    """
    from vntransfer_lab.reports import verification
    from vntransfer_lab.reports.report import load_report
    from vntransfer_lab.reports.tables import render
    from vntransfer_lab.runner.datasets import split_names
    from vntransfer_lab.runner.display import Display

    share = verification.TOLERANCE if tolerance is None else tolerance
    with Display() as display:
        found = verification.verify(
            folder,
            cells=cells,
            data=split_names(data) or None,
            targets=split(targets),
            methods=split(methods),
            seed=seed,
            jobs=jobs,
            watcher=display,
        )
    typer.echo(render([verification.as_table(found)]))
    for remark in load_report(folder).superseded():
        typer.echo(f"not drawn: {remark}")
    same = sum(one.equal == one.numbers for one in found)
    bad = sum(one.differs(share) for one in found)
    typer.echo(
        f"{len(found) - bad} of {len(found)} cells agree, {same} of them to the last digit; {bad} "
        f"differ by more than {100 * share:g} % and three standard deviations over seeds"
    )
    if bad:
        raise typer.Exit(FAILED)
