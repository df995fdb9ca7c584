"""Every data set by name. Adding one: its loader, its test, its record here."""

from vntransfer_lab.data.entry import Entry
from vntransfer_lab.data.registry.natural import NATURAL
from vntransfer_lab.data.registry.streams import STREAMS
from vntransfer_lab.data.registry.tables import LARGE, REGRESSION, UCI_TABLES

_SYNTHETIC = Entry(
    name="synthetic",
    title="six Friedman domains with gradual covariate shift, 12 features",
    kind="domains",
    loader="vntransfer_lab.data.synthetic:load_synthetic",
    license="none needed: generated",
    parameters={
        "n_samples": "rows per domain, 1000",
        "diagonal": "variance of every feature, 1 (the paper prints 0: not a covariance)",
        "far_pair": "covariance within the neighboring domains' pairs, .5",
        "noise": "standard deviation of the response's noise, 1",
        "seed": "seed of all domains, 0",
    },
)

_FAMILIES = Entry(
    name="families",
    title="random worlds: domains that differ in inputs, in the relation, or in both",
    kind="domains",
    loader="vntransfer_lab.data.families:load_families",
    license="none needed: generated",
    parameters={
        "shift": "'covariate', 'relation' (two groups with their own) or 'both', 'covariate'",
        "n_domains": "number of domains, 6",
        "n_samples": "rows per domain, 400",
        "noise": "standard deviation of the response's noise, .3",
        "seed": "seed of the world, 0",
    },
)

_ENTRIES = (_SYNTHETIC, _FAMILIES, *NATURAL, *LARGE, *UCI_TABLES, *REGRESSION, *STREAMS)
DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
