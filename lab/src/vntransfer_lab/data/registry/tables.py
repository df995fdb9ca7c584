"""Records of the tables: single ones, and those split into domains by k-means or subjects."""

from vntransfer_lab.data.entry import Entry
from vntransfer_lab.data.registry.files import official_file

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_TORGO = "https://www.dcc.fc.up.pt/~ltorgo/Regression"
_UCI_TABLES = "https://raw.githubusercontent.com/treforevans/uci_datasets/master/uci_datasets"


def _regression(name: str, title: str, archive: str, loader: str, notes: str = "") -> Entry:
    planes = name == "2dplanes"
    return Entry(
        name=name,
        title=title,
        kind="table",
        loader=f"vntransfer_lab.data.regression:{loader}",
        files=(
            official_file(
                "regression",
                archive,
                f"{_TORGO}/{archive}",
                also=(archive.removesuffix(".tgz"), archive.replace(".tgz", ".data")),
                compact=f"{name}.npz",
                optional=planes,
            ),
        ),
        options={} if planes else {"name": name},
        license="public; not stated",
        citation="Torgo: Regression DataSets; Delve",
        notes=notes,
        parameters={
            "generated": "True: from the published formula; None: only where there is no file",
            "n_samples": "rows to generate, 40768",
            "noise": "standard deviation of the noise to generate, 1",
            "seed": "seed of the generation, 0",
        }
        if planes
        else {
            "k": "number of k-means domains, 1: the whole table",
            "seed": "seed of k-means, 0",
            "columns": "columns to cluster on, None (all)",
        },
    )


REGRESSION = (
    _regression(
        "2dplanes",
        "two planes in ten discrete features",
        "cart_delve.tgz",
        "load_planes",
        "OpenML 215",
    ),
    _regression(
        "cal_housing",
        "house values in California, 1990",
        "cal_housing.tgz",
        "load_regression",
        "OpenML 537",
    ),
    _regression("bank8FM", "simulated bank queues", "bank8FM.tgz", "load_regression", "OpenML 572"),
    _regression("puma8NH", "simulated robot arm", "puma8NH.tgz", "load_regression", "OpenML 225"),
)


def _uci(name: str, title: str, dataset: str) -> Entry:
    subjects = name == "parkinsons"
    return Entry(
        name=name,
        title=title,
        kind="domains",
        loader="vntransfer_lab.data.uci:load_uci",
        files=(
            official_file(
                "uci_extra",
                f"{name}_data.csv.gz",
                f"{_UCI_TABLES}/{name}/data.csv.gz",
                also=(f"{name}/data.csv.gz",),
                compact=f"{name}.csv.gz",
            ),
        ),
        options={"name": name},
        license="CC BY 4.0 (UCI)" if dataset.isdecimal() else "not stated",
        citation=f"UCI machine learning repository, {dataset}" if dataset.isdecimal() else dataset,
        parameters={
            "k": "number of domains, 5",
            "seed": "seed of the groups of subjects, 0" if subjects else "seed of k-means, 0",
        }
        | ({} if subjects else {"columns": "columns to cluster on, None (all)"}),
    )


UCI_TABLES = (
    _uci("protein", "physicochemical properties of protein structure, 5 k-means domains", "265"),
    _uci("bike", "hourly bike rentals, 5 k-means domains", "275"),
    _uci("pol", "telecommunication (pole), 5 k-means domains", "Weiss and Indurkhya, 1995"),
    _uci("pumadyn32nm", "robot arm with 32 features, 5 k-means domains", "Delve, pumadyn family"),
    _uci("parkinsons", "voice measures of 42 subjects, 5 groups of subjects", "189"),
)

_YEAR_PARAMETERS = {
    "k": "number of domains, 5",
    "columns": "columns to cluster on, the first 30",
    "seed": "seed of k-means, 0",
}
_YEAR_CITATION = "Bertin-Mahieux et al.: The Million Song Dataset, 2011; UCI 203"
LARGE = (
    Entry(
        name="yearpredictionmsd",
        title="release year of 515345 songs, 5 k-means domains",
        kind="domains",
        loader="vntransfer_lab.data.yearpred:load_yearpred",
        files=(
            official_file(
                "yearpredictionmsd",
                "YearPredictionMSD.txt.zip",
                f"{_UCI}/00203/YearPredictionMSD.txt.zip",
                also=("YearPredictionMSD.txt",),
            ),
        ),
        license="CC BY 4.0 (UCI)",
        citation=_YEAR_CITATION,
        parameters=_YEAR_PARAMETERS,
    ),
    Entry(
        name="yearpred-small",
        title="release year of 7000 songs, 5 k-means domains",
        kind="domains",
        loader="vntransfer_lab.data.yearpred:load_yearpred_small",
        files=(official_file("yearpredictionmsd", "yearpred_subset.npz"),),
        origin=f"{_UCI}/00203/YearPredictionMSD.txt.zip",
        license="CC BY 4.0 (UCI)",
        citation=_YEAR_CITATION,
        notes="7000 random rows of the training part of yearpredictionmsd",
        parameters=_YEAR_PARAMETERS,
    ),
    Entry(
        name="ct_slices",
        title="position of 53500 CT slices, 5 groups of patients",
        kind="domains",
        loader="vntransfer_lab.data.ct_slices:load_ct_slices",
        files=(
            official_file(
                "ct_slices",
                "slice_localization_data.zip",
                f"{_UCI}/00206/slice_localization_data.zip",
                also=("slice_localization_data.csv", "slice_localization_data"),
                compact="ct_slices_partial.npz",
                partial=True,
            ),
        ),
        license="CC BY 4.0 (UCI)",
        citation="Graf et al.: 2D Image Registration in CT Images using Radial Image Descriptors, "
        "2011; UCI 206",
        parameters={
            "k": "number of groups of patients, 5",
            "seed": "seed of dealing the patients into groups, 0",
        },
    ),
)
