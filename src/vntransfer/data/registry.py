"""Every data set by name. Adding one: its loader, its test, its record here."""

from vntransfer.data.entry import Entry

_ENTRIES = (
    Entry(
        name="synthetic",
        title="six Friedman domains with gradual covariate shift, 12 features",
        kind="domains",
        loader="vntransfer.data.synthetic:load_synthetic",
        licence="none needed: generated",
        parameters={
            "n_samples": "rows per domain, 1000",
            "diagonal": "variance of every feature, 1 (the paper prints 0: not a covariance)",
            "far_pair": "covariance within the neighbouring domains' pairs, .5",
            "noise": "standard deviation of the response's noise, 1",
            "seed": "seed of all domains, 0",
        },
    ),
)

DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
