"""Records of the sets whose domains nature gives: product categories, cameras, fields."""

from vntransfer_lab.data.entry import Entry, RemoteFile
from vntransfer_lab.data.registry.files import official_file

_BLITZER = (
    "Blitzer, Dredze, Pereira: Biographies, Bollywood, Boom-boxes and Blenders, ACL 2007; "
    "research use"
)
_SENTIMENT = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment"
_AMAZON_PARAMETERS = {
    "response": "'stars' or 'binary' (above or below three stars), 'stars'",
    "n_words": "size of the vocabulary, 1000",
    "stop_words": "whether to leave out English stop words, False",
}


def _amazon(name: str, title: str, form: str, file: RemoteFile, notes: str) -> Entry:
    sources = {
        "sources": "'seven' (the paper's: a target has the other 6 as sources) or 'all' (25: the "
        "other 24), 'seven'"
    }
    return Entry(
        name=name,
        title=title,
        kind="domains",
        loader="vntransfer_lab.data.amazon:load_amazon",
        files=(file,),
        options={"name": name, "form": form},
        origin=_SENTIMENT,
        license="not stated; for research",
        citation=_BLITZER,
        notes=notes,
        parameters=(sources if form == "official" else {}) | _AMAZON_PARAMETERS,
    )


_AMAZON = (
    _amazon(
        "amazon",
        "Amazon reviews, stars from tf-idf of words; 7 (or 25) product categories",
        "official",
        official_file(
            "amazon",
            "unprocessed.tar.gz",
            f"{_SENTIMENT}/unprocessed.tar.gz",
            also=("sorted_data", "unprocessed", "processed_stars.tar.gz", "processed_stars"),
        ),
        "processed_stars.tar.gz of the same address is read as well",
    ),
    _amazon(
        "amazon4",
        "Amazon reviews with exact stars: books, dvd, electronics, kitchen",
        "stars",
        official_file("amazon", "blitzer_raw_stars_4domains.jsonl.gz"),
        "a compact form of part of the official archive; without it use `amazon`",
    ),
    _amazon(
        "amazon7i",
        "Amazon reviews of the paper's seven categories, stars known as intervals",
        "intervals",
        official_file("amazon", "blitzer_7domains_thresholded_stars.tsv.gz"),
        "y is the middle of the interval of stars, or binary; without the file use `amazon`",
    ),
)

NATURAL = (
    *_AMAZON,
    Entry(
        name="trancos",
        title="traffic pictures with dotted vehicles, 5 domains of cameras",
        kind="domains",
        loader="vntransfer_lab.data.trancos:load_trancos",
        files=(
            official_file(
                "trancos",
                "TRANCOS_v3.tar.gz",
                "http://agamenon.tsc.uah.es/Personales/rlopez/data/trancos/TRANCOS_v3.tar.gz",
                also=("TRANCOS_v3", "TRANCOS"),
                compact="trancos_320x240.npz",
            ),
        ),
        license="research use only, terms of the Dirección General de Tráfico; never redistribute",
        citation="Guerrero-Gómez-Olmedo et al.: Extremely Overlapping Vehicle Counting, 2015",
        parameters={
            "size": "(height, width) of pictures and densities, that of the file",
            "n_domains": "number of domains, 5",
            "sigma": "standard deviation of a dot's Gaussian at 480 x 640, 10",
            "border": "'renormalize' (a dot counts 1) or 'cut' (less near the border)",
            "count": "y: 'masked' (density inside the mask) or 'dots' (all)",
            "cameras": "mapping picture -> camera, where you have one; None",
            "threshold": "of grouping pictures by masks where cameras are unknown, .3",
        },
    ),
    Entry(
        name="landmine",
        title="radar features of 29 minefields, two kinds of terrain",
        kind="domains",
        loader="vntransfer_lab.data.landmine:load_landmine",
        files=(
            official_file(
                "landmine",
                "LandmineData.zip",
                "http://www.ee.duke.edu/~lcarin/LandmineData.zip",
                also=("LandmineData",),
                compact="LandmineData.mat",
            ),
        ),
        license="not stated; for research",
        citation="Xue, Liao, Carin, Krishnapuram: Multi-task learning for classification with "
        "Dirichlet process priors, JMLR 2007",
    ),
)
