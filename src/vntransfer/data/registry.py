"""Every data set by name. Adding one: its loader, its test, its record here."""

from vntransfer.data.entry import Compact, Entry, RemoteFile
from vntransfer.data.hashes import CONTENT_MD5, MD5, SHA256

_HERE = "vntransfer.data"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_TORGO = "https://www.dcc.fc.up.pt/~ltorgo/Regression"
_UCI_TABLES = "https://raw.githubusercontent.com/treforevans/uci_datasets/master/uci_datasets"
_STREAM_PARAMETERS = {
    "n_tasks": "number of tasks, 10",
    "n_train": "training rows per task, 1000",
    "n_test": "test rows, 10000 or all there are",
    "seed": "seed of the stream (maps and rows); the seed of training is the learner's own; 0",
    "held_out": "test rows from the last sixth of the training part, to choose "
    "hyper-parameters; False",
}
_BLITZER = (
    "Blitzer, Dredze, Pereira: Biographies, Bollywood, Boom-boxes and Blenders, ACL 2007; "
    "research use"
)


def _file(
    folder: str,
    name: str,
    *urls: str,
    also: tuple[str, ...] = (),
    compact: str | None = None,
    partial: bool = False,
    size: int | None = None,
    optional: bool = False,
) -> RemoteFile:
    """One file with the hashes that are known for it and for its compact form."""
    key, short = f"{folder}/{name}", compact or name
    known = SHA256.get(f"{folder}/{short}")
    return RemoteFile(
        name=name,
        urls=urls,
        folder=folder,
        size=size,
        md5=MD5.get(key),
        content_md5=CONTENT_MD5.get(key),
        also=also,
        compact=(Compact(short, known, partial),) if known else (),
        optional=optional,
    )


def _idx_files(folder: str, *addresses: str) -> tuple[RemoteFile, ...]:
    shorts = [f"{part}-{what}" for part in ("train", "t10k") for what in _IDX]
    return tuple(
        _file(folder, f"{s}.gz", *(f"{address}/{s}.gz" for address in addresses), also=(s,))
        for s in shorts
    )


_IDX = ("images-idx3-ubyte", "labels-idx1-ubyte")
_MNIST = _idx_files(
    "mnist",
    "http://yann.lecun.com/exdb/mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
)
_FASHION = _idx_files("fashion_mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com")


def _stream(
    name: str, title: str, files: tuple[RemoteFile, ...], licence: str, citation: str
) -> Entry:
    rotated = name.endswith("R")
    return Entry(
        name=name,
        title=title,
        kind="stream",
        loader=f"{_HERE}.streams:load_stream",
        files=files,
        options={
            "name": name,
            "collection": "notmnist" if name.startswith("not") else "idx",
            "transform": "rotate" if rotated else "permute",
        },
        licence=licence,
        citation=citation,
        parameters=_STREAM_PARAMETERS
        | ({"max_angle": "rotations cover 0 to this many degrees, 90"} if rotated else {}),
    )


_LECUN = "LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition"
_MNIST_LICENCE = "CC BY-SA 3.0"
_STREAMS = (
    _stream("mnistP", "permuted MNIST, 10 tasks", _MNIST, _MNIST_LICENCE, f"{_LECUN}, 1998"),
    _stream("mnistR", "rotated MNIST, 10 tasks", _MNIST, _MNIST_LICENCE, f"{_LECUN}, 1998"),
    _stream(
        "fashionP",
        "permuted Fashion-MNIST, 10 tasks",
        _FASHION,
        "MIT",
        "Xiao, Rasul, Vollgraf: Fashion-MNIST, 2017",
    ),
    _stream(
        "notmnistP",
        "permuted notMNIST, 10 tasks",
        (
            _file(
                "notmnist",
                "notMNIST_small.tar.gz",
                "http://yaroslavvb.com/upload/notMNIST/notMNIST_small.tar.gz",
                also=("notMNIST_small",),
                compact="notmnist_small.npz",
                size=8_458_043,
            ),
        ),
        "not stated; glyphs of publicly available fonts",
        "Bulatov: notMNIST dataset, 2011",
    ),
    Entry(
        name="omniglot",
        title="Omniglot alphabets, 10 tasks with a head each",
        kind="stream",
        loader=f"{_HERE}.omniglot:load_omniglot",
        files=(
            _file(
                "omniglot",
                "images_background.zip",
                "https://github.com/brendenlake/omniglot/raw/master/python/images_background.zip",
                also=("images_background",),
                compact="omniglot_images_background.npz",
            ),
        ),
        licence="MIT",
        citation="Lake, Salakhutdinov, Tenenbaum: Human-level concept learning, Science 2015",
        parameters={
            "n_tasks": "number of alphabets, in the order of their names, 10",
            "n_train": "training drawings of the 20 of every character, 15",
            "size": "side of the pictures in pixels, 28 (105 is the original)",
            "seed": "seed of the stream: which drawings are for training; 0",
        },
    ),
)

_AMAZON_PARAMETERS = {
    "response": "'stars' or 'binary' (above or below three stars), 'stars'",
    "n_words": "size of the vocabulary, 1000",
    "stop_words": "whether to leave out English stop words, False",
}


def _amazon(name: str, title: str, form: str, file: RemoteFile, notes: str) -> Entry:
    sources = {"sources": "'seven' (the paper's domains) or 'all' (25), 'seven'"}
    return Entry(
        name=name,
        title=title,
        kind="domains",
        loader=f"{_HERE}.amazon:load_amazon",
        files=(file,),
        options={"name": name, "form": form},
        licence="not stated; for research",
        citation=_BLITZER,
        notes=notes,
        parameters=(sources if form == "official" else {}) | _AMAZON_PARAMETERS,
    )


_AMAZON = (
    _amazon(
        "amazon",
        "Amazon reviews, stars from tf-idf of words; 7 (or 25) product categories",
        "official",
        _file(
            "amazon",
            "unprocessed.tar.gz",
            "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/unprocessed.tar.gz",
            also=("sorted_data", "unprocessed", "processed_stars.tar.gz", "processed_stars"),
        ),
        "processed_stars.tar.gz of the same address is read as well",
    ),
    _amazon(
        "amazon4",
        "Amazon reviews with exact stars: books, dvd, electronics, kitchen",
        "stars",
        _file("amazon", "blitzer_raw_stars_4domains.jsonl.gz"),
        "a compact form of part of the official archive; without it use `amazon`",
    ),
    _amazon(
        "amazon7i",
        "Amazon reviews of the paper's seven categories, stars known as intervals",
        "intervals",
        _file("amazon", "blitzer_7domains_thresholded_stars.tsv.gz"),
        "y is the middle of the interval of stars, or binary; without the file use `amazon`",
    ),
)

_NATURAL = (
    Entry(
        name="trancos",
        title="traffic pictures with dotted vehicles, 5 domains of cameras",
        kind="domains",
        loader=f"{_HERE}.trancos:load_trancos",
        files=(
            _file(
                "trancos",
                "TRANCOS_v3.tar.gz",
                "http://agamenon.tsc.uah.es/Personales/rlopez/data/trancos/TRANCOS_v3.tar.gz",
                also=("TRANCOS_v3", "TRANCOS"),
                compact="trancos_320x240.npz",
            ),
        ),
        licence="research use only, terms of the Dirección General de Tráfico; never redistribute",
        citation="Guerrero-Gómez-Olmedo et al.: Extremely Overlapping Vehicle Counting, 2015",
        parameters={
            "size": "(height, width) of pictures and densities, that of the file",
            "n_domains": "number of domains, 5",
            "sigma": "standard deviation of a dot's Gaussian at 480 x 640, 10",
            "border": "'renormalise' (a dot counts 1) or 'cut' (less near the border)",
            "count": "y: 'masked' (density inside the mask) or 'dots' (all)",
            "cameras": "mapping picture -> camera, where you have one; None",
            "threshold": "of grouping pictures by masks where cameras are unknown, .3",
        },
    ),
    Entry(
        name="landmine",
        title="radar features of 29 minefields, two kinds of terrain",
        kind="domains",
        loader=f"{_HERE}.landmine:load_landmine",
        files=(
            _file(
                "landmine",
                "LandmineData.zip",
                "http://www.ee.duke.edu/~lcarin/LandmineData.zip",
                also=("LandmineData",),
                compact="LandmineData.mat",
            ),
        ),
        licence="not stated; for research",
        citation="Xue, Liao, Carin, Krishnapuram: Multi-task learning for classification with "
        "Dirichlet process priors, JMLR 2007",
    ),
)


def _regression(name: str, title: str, archive: str, loader: str, notes: str = "") -> Entry:
    planes = name == "2dplanes"
    return Entry(
        name=name,
        title=title,
        kind="table",
        loader=f"{_HERE}.regression:{loader}",
        files=(
            _file(
                "regression",
                archive,
                f"{_TORGO}/{archive}",
                also=(archive.replace(".tgz", ".data"),),
                compact=f"{name}.npz",
                optional=planes,
            ),
        ),
        options={} if planes else {"name": name},
        licence="public; not stated",
        citation="Torgo: Regression DataSets; Delve",
        notes=notes,
        parameters={
            "generated": "True: from the published formula; None: only where there is no file",
            "n_samples": "rows to generate, 40768",
            "noise": "standard deviation of the noise to generate, 1",
            "seed": "seed of the generation, 0",
        }
        if planes
        else {},
    )


_REGRESSION = (
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
        loader=f"{_HERE}.uci:load_uci",
        files=(
            _file(
                "uci_extra",
                f"{name}_data.csv.gz",
                f"{_UCI_TABLES}/{name}/data.csv.gz",
                also=(f"{name}/data.csv.gz",),
                compact=f"{name}.csv.gz",
            ),
        ),
        options={"name": name},
        licence="CC BY 4.0 (UCI)",
        citation=f"UCI machine learning repository, {dataset}",
        parameters={
            "k": "number of domains, 5",
            "seed": "seed of the groups of subjects, 0" if subjects else "seed of k-means, 0",
        }
        | ({} if subjects else {"columns": "columns to cluster on, None (all)"}),
    )


_TABLES = (
    _uci("protein", "physicochemical properties of protein structure, 5 k-means domains", "265"),
    _uci("bike", "hourly bike rentals, 5 k-means domains", "275"),
    _uci("pol", "telecommunication (pole), 5 k-means domains", "from Delve"),
    _uci("pumadyn32nm", "robot arm with 32 features, 5 k-means domains", "from Delve"),
    _uci("parkinsons", "voice measures of 42 subjects, 5 groups of subjects", "189"),
)

_YEAR_PARAMETERS = {
    "k": "number of domains, 5",
    "columns": "columns to cluster on, the first 30",
    "seed": "seed of k-means, 0",
}
_YEAR_CITATION = "Bertin-Mahieux et al.: The Million Song Dataset, 2011; UCI 203"
_LARGE = (
    Entry(
        name="yearpredictionmsd",
        title="release year of 515345 songs, 5 k-means domains",
        kind="domains",
        loader=f"{_HERE}.yearpred:load_yearpred",
        files=(
            _file(
                "yearpredictionmsd",
                "YearPredictionMSD.txt.zip",
                f"{_UCI}/00203/YearPredictionMSD.txt.zip",
                also=("YearPredictionMSD.txt",),
            ),
        ),
        licence="CC BY 4.0 (UCI)",
        citation=_YEAR_CITATION,
        parameters=_YEAR_PARAMETERS,
    ),
    Entry(
        name="yearpred-small",
        title="release year of 7000 songs, 5 k-means domains",
        kind="domains",
        loader=f"{_HERE}.yearpred:load_yearpred_small",
        files=(_file("yearpredictionmsd", "yearpred_subset.npz"),),
        licence="CC BY 4.0 (UCI)",
        citation=_YEAR_CITATION,
        notes="7000 random rows of the training part of yearpredictionmsd",
        parameters=_YEAR_PARAMETERS,
    ),
    Entry(
        name="ct_slices",
        title="position of 53500 CT slices, 5 groups of patients",
        kind="domains",
        loader=f"{_HERE}.ct_slices:load_ct_slices",
        files=(
            _file(
                "ct_slices",
                "slice_localization_data.zip",
                f"{_UCI}/00206/slice_localization_data.zip",
                also=("slice_localization_data.csv",),
                compact="ct_slices_partial.npz",
                partial=True,
            ),
        ),
        licence="CC BY 4.0 (UCI)",
        citation="Graf et al.: 2D Image Registration in CT Images using Radial Image Descriptors, "
        "2011; UCI 206",
        parameters={
            "k": "number of groups of patients, 5",
            "seed": "seed of dealing the patients into groups, 0",
        },
    ),
)

_SYNTHETIC = Entry(
    name="synthetic",
    title="six Friedman domains with gradual covariate shift, 12 features",
    kind="domains",
    loader=f"{_HERE}.synthetic:load_synthetic",
    licence="none needed: generated",
    parameters={
        "n_samples": "rows per domain, 1000",
        "diagonal": "variance of every feature, 1 (the paper prints 0: not a covariance)",
        "far_pair": "covariance within the neighbouring domains' pairs, .5",
        "noise": "standard deviation of the response's noise, 1",
        "seed": "seed of all domains, 0",
    },
)

_ENTRIES = (_SYNTHETIC, *_AMAZON, *_LARGE, *_NATURAL, *_STREAMS, *_REGRESSION, *_TABLES)
DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
