"""Amazon reviews (Blitzer et al. 2007) as tf-idf features, stars as response."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vntransfer.checks import one_of, whole
from vntransfer.errors import DataError
from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.reviews import Review, read_compact_stars, read_intervals, read_official

SEVEN = (
    *("baby", "beauty", "camera_photo", "computer_video_games"),
    *("electronics", "gourmet_food", "grocery"),
)


def drop_repeats(reviews: Iterable[Review]) -> list[Review]:
    """Keep one of equal texts of a domain.

    Repeats whose intervals of stars overlap are one review seen through several thresholds: the
    intervals are intersected. Repeats whose stars exclude each other are different reviews and
    stay.

    Examples
    --------
    >>> twice = [Review("baby", "good", 2, 5), Review("baby", "good", 1, 4)]
    >>> drop_repeats(twice)
    [Review(domain='baby', text='good', low=2, high=4)]
    """
    kept: dict[tuple[str, str | tuple[str, ...]], list[Review]] = {}
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


def number_from_interval(low: float, high: float, *, binary: bool = False) -> float | None:
    """Make one number of an interval of stars.

    Stars: the middle of the interval. Binary, by the rule of Blitzer et al.: 1 for more than
    three stars, 0 for less; None where the interval does not say which.

    Examples
    --------
    >>> number_from_interval(2, 5), number_from_interval(4, 5, binary=True)
    (3.5, 1.0)
    >>> number_from_interval(2, 5, binary=True) is None
    True
    """
    if not binary:
        return (low + high) / 2
    if low > 3:
        return 1.0
    return 0.0 if high < 3 else None


def load_amazon(
    files: Mapping[str, Path],
    *,
    form: Literal["official", "stars", "intervals"],
    sources: Literal["seven", "all"] = "seven",
    response: Literal["stars", "binary"] = "stars",
    n_words: int = 1000,
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
    response
        "stars", or "binary" (1 above three stars, 0 below; reviews that do not tell are dropped).
    n_words
        Size of the vocabulary: the words that occur most often in all loaded domains together.

    Returns
    -------
    Domains
        X a CSR matrix (n, n_words) of float32. ``extras["response_std"]`` is the standard
        deviation of y over all loaded domains: divide a mean absolute error in stars by it for
        one in standard deviations.
    """
    one_of("sources", sources, ("seven", "all"))
    one_of("response", response, ("stars", "binary"))
    (path,) = files.values()
    read = {"official": read_official, "stars": read_compact_stars, "intervals": read_intervals}
    every = read[form](path)
    reviews = drop_repeats(every)
    wanted = _wanted(reviews, sources, path)
    reviews = [review for review in reviews if review.domain in wanted]
    numbers = [number_from_interval(r.low, r.high, binary=response == "binary") for r in reviews]
    told = [(r, n) for r, n in zip(reviews, numbers, strict=True) if n is not None]
    reviews, y = [r for r, _ in told], np.array([n for _, n in told])
    X, words = tf_idf([r.text for r in reviews], n_words)
    owner = np.array([r.domain for r in reviews])
    low, high = np.array([r.low for r in reviews]), np.array([r.high for r in reviews])
    rows = {domain: np.flatnonzero(owner == domain) for domain in wanted}
    built = [
        f"{len(every)} reviews read, exact repeats within a domain removed, "
        f"{len(reviews)} used in {len(wanted)} domains",
        f"tf-idf over the {len(words)} most frequent words of all loaded domains, rows of length "
        "1, stop words kept",
    ]
    if form == "intervals":
        built.append(
            "stars known only as an interval (one threshold per review, intersected over repeats): "
            + ("binary where the interval lies on one side of 3" if response == "binary" else "")
            + ("y is the middle of the interval" if response == "stars" else "")
        )
    return Domains(
        "amazon",
        {domain: (X[index], y[index]) for domain, index in rows.items()},
        feature_names=words,
        response_name="stars" if response == "stars" else "positive",
        targets=SEVEN if set(SEVEN) <= set(wanted) else (),
        provenance=Provenance(tuple(built)),
        extras={
            "response_mean": float(y.mean()),
            "response_std": float(y.std()),
            "star_interval": {d: np.stack([low[i], high[i]], 1) for d, i in rows.items()},
        },
    )


def _wanted(reviews: Sequence[Review], sources: str, path: Path) -> tuple[str, ...]:
    present = Counter(review.domain for review in reviews)
    if sources == "all":
        return tuple(sorted(present))
    if lacking := [domain for domain in SEVEN if domain not in present]:
        raise DataError(
            f"{path}: has no domain {', '.join(lacking)}; load it with sources='all' for the "
            f"{len(present)} domains it has: {', '.join(sorted(present))}"
        )
    return SEVEN


def tf_idf(
    texts: Sequence[str | tuple[str, ...]], n_words: int = 1000
) -> tuple[Any, tuple[str, ...]]:
    """CSR matrix (n, n_words) of float32 and its words, the most frequent ones.

    A text is a string, or the tuple of its words. Of equally frequent words those that come first
    are taken: ``max_features`` of scikit-learn leaves that to a sort that differs from processor to
    processor.

    Examples
    --------
    >>> X, words = tf_idf(["a good book", "good good", "bad book"], 2)
    >>> words, X.toarray().round(2).tolist()[1]
    (('book', 'good'), [0.0, 1.0])
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    whole("n_words", n_words, minimum=1)
    analyze = CountVectorizer().build_analyzer()
    split = [list(analyze(text) if isinstance(text, str) else text) for text in texts]
    frequent = Counter(word for words in split for word in words).most_common(n_words)
    if not frequent:
        raise DataError(f"texts: no words in {len(texts)} reviews; give texts with words")
    counter = CountVectorizer(analyzer=list, dtype=np.float32)
    counts, known = counter.fit_transform(split), counter.get_feature_names_out()
    kept = np.flatnonzero(np.isin(known, [word for word, _ in frequent]))
    return TfidfTransformer().fit_transform(counts[:, kept]), tuple(known[kept])
