"""Amazon reviews (Blitzer et al. 2007) as tf-idf features, stars as response."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vntransfer.checks import one_of
from vntransfer.errors import DataError, damage_named
from vntransfer_lab.data.archives import read_members
from vntransfer_lab.data.base import Domains, Provenance

SEVEN = (
    *("baby", "beauty", "camera_photo", "computer_video_games"),
    *("electronics", "gourmet_food", "grocery"),
)
LABELED = ("positive.review", "negative.review")
FIELD = {
    name: re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL)
    for name in ("rating", "title", "review_text")
}
REVIEW = re.compile(r"<review>(.*?)</review>", re.DOTALL)
INTERVAL_COLUMNS = ("domain", "threshold", "split", "label", "star_min", "star_max", "text")


@dataclass(frozen=True)
class Review:
    """One review: its text, and its stars as an interval."""

    domain: str
    text: str
    low: float
    high: float


def load_amazon(
    files: Mapping[str, Path],
    *,
    form: Literal["official", "stars", "intervals"],
    sources: Literal["seven", "all"] = "seven",
) -> Domains:
    """Reviews as tf-idf rows over the most frequent words, one domain per product category.

    Parameters
    ----------
    files
        Found files.
    form
        Which files; fixed by the registry.
    sources
        "seven": the paper's seven domains, so a target has the other 6 as sources; "all": every
        domain of the files (25 in the official archive), the other 24 as sources. The default
        targets are the paper's seven either way.

    Returns
    -------
    Domains
        X a CSR matrix (n, 1000) of float32. ``extras["response_std"]`` is the standard deviation
        of y over all loaded domains.
    """
    one_of("sources", sources, ("seven", "all"))
    (path,) = files.values()
    read = {"official": read_official, "stars": read_compact_stars, "intervals": read_intervals}
    every = read[form](path)
    reviews = drop_repeats(every)
    present = {review.domain for review in reviews}
    wanted = SEVEN if sources == "seven" else tuple(sorted(present))
    if lacking := [domain for domain in wanted if domain not in present]:
        raise DataError(
            f"{path}: has no domain {', '.join(lacking)}; load it with sources='all' for the "
            f"{len(present)} domains it has: {', '.join(sorted(present))}"
        )
    reviews = [review for review in reviews if review.domain in wanted]
    X, words = tf_idf([r.text for r in reviews])
    owner = np.array([r.domain for r in reviews])
    low, high = np.array([r.low for r in reviews]), np.array([r.high for r in reviews])
    y = (low + high) / 2
    rows = {domain: np.flatnonzero(owner == domain) for domain in wanted}
    built = [
        f"{len(every)} reviews read, exact duplicates within a domain removed, "
        f"{len(reviews)} used in {len(wanted)} domains",
        f"tf-idf over the {len(words)} most frequent words of all loaded domains, rows of length "
        "1, stop words kept",
    ]
    if form == "intervals":
        built.append(
            "stars known only as an interval (one threshold per review, intersected over equal "
            "texts): y is the midpoint of the interval"
        )
    return Domains(
        "amazon",
        {domain: (X[index], y[index]) for domain, index in rows.items()},
        feature_names=words,
        response_name="stars",
        targets=SEVEN if set(SEVEN) <= set(wanted) else (),
        provenance=Provenance(tuple(built)),
        extras={
            "response_std": float(y.std()),
            "star_interval": {d: np.stack([low[i], high[i]], 1) for d, i in rows.items()},
        },
    )


def drop_repeats(reviews: Iterable[Review]) -> list[Review]:
    """Keep one of several equal texts of a domain.

    Repeats whose intervals of stars overlap are one review seen through several thresholds: the
    intervals are intersected. Repeats whose stars exclude each other are different reviews and
    stay.
    """
    kept: dict[tuple[str, str], list[Review]] = {}
    for review in reviews:
        seen = kept.setdefault((review.domain, review.text), [])
        for i, other in enumerate(seen):
            low, high = max(review.low, other.low), min(review.high, other.high)
            if low <= high:
                seen[i] = Review(review.domain, review.text, low, high)
                break
        else:
            seen.append(review)
    return [review for seen in kept.values() for review in seen]


def tf_idf(texts: Sequence[str], n_words: int = 1000) -> tuple[Any, tuple[str, ...]]:
    """CSR matrix (n, n_words) of float32 and its words, the most frequent ones of all texts.

    Among equally frequent words the first ones are taken. ``max_features`` of scikit-learn leaves
    this to a sort that differs between processors.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    analyze = CountVectorizer().build_analyzer()
    split = [list(analyze(text)) for text in texts]
    frequent = Counter(word for words in split for word in words).most_common(n_words)
    if not frequent:
        raise DataError(f"texts: no words in {len(texts)} reviews; give texts with words")
    counter = CountVectorizer(analyzer=list, dtype=np.float32)
    counts, known = counter.fit_transform(split), counter.get_feature_names_out()
    kept = np.flatnonzero(np.isin(known, [word for word, _ in frequent]))
    return TfidfTransformer().fit_transform(counts[:, kept]), tuple(known[kept])


def read_official(path: Path) -> list[Review]:
    """Labeled reviews of ``unprocessed``, archive or unpacked folder.

    They are positive.review and negative.review of each domain: at most 1000 each, stars 1, 2, 4
    and 5.
    """
    reviews: list[Review] = []
    contents = read_members(path, lambda name: name.split("/")[-1] in LABELED)
    for name, content in sorted(contents):
        domain = _domain_name(name.split("/")[-2] if "/" in name else path.name)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:  # of some of the official files
            text = content.decode("latin-1")
        reviews += parse_unprocessed(text, domain, f"{path}: {name}")
    if not reviews:
        raise DataError(
            f"{path}: holds none of {', '.join(LABELED)} in a folder per domain; give "
            "unprocessed.tar.gz, or the folder it unpacks to"
        )
    return reviews


def _domain_name(folder: str) -> str:
    return folder.replace("_&_", "_")


def parse_unprocessed(text: str, domain: str, where: str = "text") -> list[Review]:
    """Reviews of a file of ``<review>`` elements; title and text together."""
    bodies = REVIEW.findall(text)
    if len(bodies) != text.count("<review>"):
        raise DataError(
            f"{where}: {text.count('<review>')} reviews begin but {len(bodies)} end; fetch it again"
        )
    reviews = []
    for i, body in enumerate(bodies):
        found = {name: match[1] for name, field in FIELD.items() if (match := field.search(body))}
        for name in ("rating", "review_text"):
            if name not in found:
                raise DataError(f"{where}, review {i + 1}: has no <{name}>; fetch it again")
        stars = _stars(found["rating"], f"{where}, review {i + 1}")
        parts = [found[name] for name in ("title", "review_text") if name in found]
        reviews.append(Review(domain, "\n".join(parts), stars, stars))
    return reviews


def _stars(value: str, where: str) -> float:
    with suppress(ValueError):
        if 1 <= (stars := float(value)) <= 5:
            return stars
    raise DataError(f"{where}: rating {value!r}; expected 1 to 5 stars")


def read_compact_stars(path: Path) -> list[Review]:
    """Reviews with exact stars from lines of json: domain, rating, title, text."""
    reviews = []
    for number, line in _lines(path):
        with damage_named(where := f"{path}, line {number}", "review"):
            row = json.loads(line)
            stars = _stars(str(row["rating"]), where)
            text = f"{row['title']}\n{row['text']}"
            reviews.append(Review(_domain_name(row["domain"]), text, stars, stars))
    return reviews


def read_intervals(path: Path) -> list[Review]:
    """Reviews with stars known as an interval, from tab-separated columns with a header."""
    lines = _lines(path)
    _, header = next(lines, (0, ""))
    if tuple(header.split("\t")) != INTERVAL_COLUMNS:
        raise DataError(f"{path}: columns {header!r}; expected {' '.join(INTERVAL_COLUMNS)}")
    reviews = []
    for number, line in lines:
        with damage_named(where := f"{path}, line {number}", "review"):
            domain, _, _, _, *stars, text = line.split("\t")
            low, high = (_stars(one, where) for one in stars)
            reviews.append(Review(_domain_name(domain), text, low, high))
    return reviews


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with damage_named(path), gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip("\n")
