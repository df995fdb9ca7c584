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

app = typer.Typer(help="Run experiments and report them.", no_args_is_help=True)

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]
_Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Worker processes; by default one per core."),
]
_Engine = Annotated[
    str, typer.Option(help=r"local, or dask: a cluster (./lab\[cluster]).", metavar="NAME")
]
_Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Of a dask cluster; without one a cluster of this machine's cores."
    ),
]


def assignments(pairs: list[str]) -> dict[str, Any]:
    """``key=value`` pairs; a value that is no TOML is taken as text."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise PresetError(f"--set: expected key=value, got {pair!r}")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = value.strip()
    return settings


def _stoppable(folder: Path) -> AbstractContextManager[None]:
    """Say after Ctrl-C or SIGTERM that finished cells are kept."""
    return signals_as_exit_codes(
        f"stopped; finished cells are kept in {folder}: rerun the same command to resume"
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
    from vntransfer_lab.runner.preset import shipped

    presets = shipped()
    width = max(map(len, presets))
    for name, title in presets.items():
        typer.echo(f"{name:<{width}}  {title}")


@app.command()
def run(
    preset: Annotated[str, typer.Argument(metavar="NAME", help="A preset, or a .toml file.")],
    methods: Annotated[
        str | None, typer.Option(help="Only these methods, separated by commas.")
    ] = None,
    targets: Annotated[
        str | None, typer.Option(help="Only these targets, separated by commas.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds, the preset's first ones.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; by default runs/NAME.")] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Take finished cells from this run folder or packed result; may be repeated.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Start no cell after this time: 2h, 90m, 1h30m."),
    ] = None,
) -> None:
    """Run an experiment; cells that are finished already are not computed again."""
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
    folder: _Folder,
    jobs: _Jobs = None,
    engine: _Engine = "local",
    scheduler: _Scheduler = None,
) -> None:
    """Compute the failed and the missing cells of a run folder again."""
    from vntransfer_lab.runner import run as runner
    from vntransfer_lab.runner.display import Display

    with Display() as display, _stoppable(folder):
        options = runner.RunOptions(engine, scheduler, watcher=display)
        summary = runner.retry(folder, jobs=jobs, options=options)
    _conclude(summary)


@app.command()
def watch(
    folder: _Folder,
    once: Annotated[bool, typer.Option("--once", help="Print and exit.")] = False,
) -> None:
    """Show how far a run is, from another terminal; ends when nobody works on it any more."""
    from vntransfer_lab.runner.watch import watch as show

    try:
        show(folder, once=once)
    except KeyboardInterrupt as stop:
        if isinstance(stop, Terminated):
            raise


@app.command()
def report(
    folder: _Folder,
    form: Annotated[
        str, typer.Option("--format", help="terminal, markdown, csv or html (a page).")
    ] = "terminal",
    out: Annotated[
        Path | None, typer.Option(help="File of the page; by default report.html in DIR.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw the figures into this folder, as SVG.")
    ] = None,
    overwrite: Overwrite = False,
    times: Annotated[bool, typer.Option("--times", help="Add how long the cells took.")] = False,
    baseline: Annotated[
        str, typer.Option(help="Test against this method instead of the preset's.")
    ] = "",
    methods: Annotated[
        str, typer.Option(help="Show only these (and the baseline), such as mdd,darn.")
    ] = "",
) -> None:
    """Print the tables of a run folder, or write its page."""
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
            f"--out: goes with --format html, got --format {form}; redirect instead"
        )
    else:
        typer.echo(tables(folder, form, times=times, view=view))
    if figures is not None:
        from vntransfer_lab.reports.drawings import draw

        for path in draw(folder, figures, view, overwrite=overwrite):
            typer.echo(f"wrote {path}", err=True)


@app.command()
def export(
    folder: _Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Ends in .csv or .parquet.")],
    overwrite: Overwrite = False,
) -> None:
    """Write all cells and metrics of a run folder to one file."""
    from vntransfer_lab import export as write

    typer.echo(f"wrote {write(folder, file, overwrite=overwrite)} rows to {file}")


@app.command()
def pack(
    folder: _Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the two small files.")],
) -> None:
    """Pack a finished run into two small files that report again wherever they are."""
    from vntransfer_lab import pack as write

    typer.echo(f"packed {write(folder, out)} cells; see: vnt bench report {out}")


@app.command()
def recover(
    folder: _Folder, out: Annotated[Path, typer.Option(metavar="NEW", help="A new run folder.")]
) -> None:
    """Copy the intact cells of a damaged run folder into a new one."""
    from vntransfer_lab.runner.recovery import recover as copy

    typer.echo(f"copied {copy(folder, out)} cells; rerun the command of the run with --out {out}")


@app.command()
def verify(
    folder: _Folder,
    cells: Annotated[int, typer.Option(min=1, help="How many cells, drawn at random.")] = 3,
    data: Annotated[str, typer.Option(help="Among these data sets, separated by commas.")] = "",
    targets: Annotated[str, typer.Option(help="Among these targets (streams).")] = "",
    methods: Annotated[str, typer.Option(help="Among these methods.")] = "",
    seed: Annotated[int, typer.Option(help="Of the draw: another one gives other cells.")] = 0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Relative difference of the metric that is no failure; 0.03 by default.",
        ),
    ] = None,
    jobs: _Jobs = None,
) -> None:
    """Compute some cells of a run folder or of packed results again, and compare.

    On a processor like the run's all numbers are equal to the last digit; another one adds sums up
    in another order, and training carries that far. Ends with 1 if a metric is farther off than the
    tolerance and than three standard deviations over the seeds of the run.
    """
    from vntransfer_lab.reports.tables import render
    from vntransfer_lab.reports.verification import TOLERANCE, as_table
    from vntransfer_lab.reports.verification import verify as compute
    from vntransfer_lab.runner.datasets import split_names
    from vntransfer_lab.runner.display import Display

    share = TOLERANCE if tolerance is None else tolerance
    with Display() as display:
        found = compute(
            folder,
            cells=cells,
            data=split_names(data) or None,
            targets=split(targets),
            methods=split(methods),
            seed=seed,
            jobs=jobs,
            watcher=display,
        )
    typer.echo(render([as_table(found)]))
    same = sum(one.equal == one.numbers for one in found)
    bad = sum(one.differs(share) for one in found)
    typer.echo(
        f"{same} of {len(found)} cells equal to the last digit, {bad} farther off than "
        f"{share:g} and than seeds are apart"
    )
    if bad:
        raise typer.Exit(FAILED)
