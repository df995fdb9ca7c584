"""Readers of the Amazon review files of Blitzer et al. (2007), official and compact."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vntransfer.errors import DataError
from vntransfer_lab.data.archives import read_members

FIELD = {
    name: re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL)
    for name in ("rating", "title", "review_text")
}
REVIEW = re.compile(r"<review>(.*?)</review>", re.DOTALL)
LABEL = "#label#"
LABELED = ("positive.review", "negative.review", "all_balanced.review")
INTERVAL_COLUMNS = ("domain", "threshold", "split", "label", "star_min", "star_max", "text")


@dataclass(frozen=True)
class Review:
    """One review: its words (repeated as often as they occur) or text, its stars as an interval."""

    domain: str
    text: str | tuple[str, ...]
    low: float
    high: float


def domain_name(folder: str) -> str:
    """Name of a domain from the official folder.

    Examples
    --------
    >>> domain_name("computer_&_video_games")
    'computer_video_games'
    """
    return folder.replace("_&_", "_")


def read_official(path: Path) -> list[Review]:
    """Labeled reviews of ``unprocessed`` or ``processed_stars``, archive or unpacked folder.

    The labeled part of ``unprocessed`` is positive.review and negative.review of each domain (at
    most 1000 each; stars 1, 2, 4, 5), of ``processed_stars`` all_balanced.review.
    """
    reviews: list[Review] = []
    contents = read_members(path, lambda name: name.split("/")[-1] in LABELED)
    for name, content in sorted(contents):
        domain = domain_name(name.split("/")[-2] if "/" in name else path.name)
        text = _text(content)
        parse = parse_stars if LABEL in text else parse_unprocessed
        reviews += parse(text, domain, f"{path}: {name}")
    if not reviews:
        raise DataError(
            f"{path}: holds none of {', '.join(LABELED)} in a folder per domain; give "
            "unprocessed.tar.gz or processed_stars.tar.gz, or the folder it unpacks to"
        )
    return reviews


def _text(content: bytes) -> str:
    """Decode as UTF-8, or Latin-1 where a file is not: some of the official ones are not."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _stars(value: str, where: str) -> float:
    try:
        stars = float(value)
    except ValueError:
        stars = float("nan")
    if not 1 <= stars <= 5:
        raise DataError(f"{where}: rating {value!r}; expected 1 to 5 stars")
    return stars


def parse_unprocessed(text: str, domain: str, where: str = "text") -> list[Review]:
    r"""Reviews of a file of ``<review>`` elements; title and text together.

    Examples
    --------
    >>> parse_unprocessed('''<review><rating>\n4.0\n</rating><title>\nGood\n</title>
    ... <review_text>\nI like it.\n</review_text></review>''', "baby")
    [Review(domain='baby', text='Good\nI like it.', low=4.0, high=4.0)]
    """
    bodies = REVIEW.findall(text)
    if len(bodies) != text.count("<review>"):
        raise DataError(
            f"{where}: {text.count('<review>')} reviews begin but {len(bodies)} end; fetch it again"
        )
    return [_review(body, domain, f"{where}, review {i + 1}") for i, body in enumerate(bodies)]


def _review(body: str, domain: str, where: str) -> Review:
    found = {name: pattern.search(body) for name, pattern in FIELD.items()}
    rating, title, text = found["rating"], found["title"], found["review_text"]
    if rating is None or text is None:
        lacking = "rating" if rating is None else "review_text"
        raise DataError(f"{where}: has no <{lacking}>; fetch it again")
    stars = _stars(rating[1], where)
    whole = text[1] if title is None else f"{title[1]}\n{text[1]}"
    return Review(domain, whole, stars, stars)


def parse_stars(text: str, domain: str, where: str = "text") -> list[Review]:
    """Reviews of a file with a line ``word:count ... #label#:stars`` each; pairs of words left out.

    Examples
    --------
    >>> parse_stars("good:2 very_good:1 book:1 #label#:5.0", "books")
    [Review(domain='books', text=('good', 'good', 'book'), low=5.0, high=5.0)]
    """
    reviews = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        words: list[str] = []
        stars = float("nan")
        for item in line.split():
            word, _, value = item.rpartition(":")
            if word == LABEL:
                stars = _stars(value, f"{where}, line {number}")
            elif not word or not value.isdecimal():
                raise DataError(f"{where}, line {number}: {item!r}; expected word:count")
            elif "_" not in word:
                words += [word] * int(value)
        if stars != stars:
            raise DataError(f"{where}, line {number}: has no {LABEL}; fetch it again")
        reviews.append(Review(domain, tuple(words), stars, stars))
    return reviews


def read_compact_stars(path: Path) -> list[Review]:
    """Reviews with exact stars from lines of json: domain, rating, title, text."""
    reviews = []
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            stars = _stars(str(row["rating"]), f"{path}, line {number}")
            text = f"{row['title']}\n{row['text']}"
            reviews.append(Review(domain_name(row["domain"]), text, stars, stars))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise DataError(f"{path}, line {number}: not a review ({error!r})") from error
    return reviews


def read_intervals(path: Path) -> list[Review]:
    """Reviews with stars known as an interval, from tab-separated columns with a header."""
    lines = _lines(path)
    _, header = next(lines, (0, ""))
    if tuple(header.split("\t")) != INTERVAL_COLUMNS:
        raise DataError(f"{path}: columns {header!r}; expected {' '.join(INTERVAL_COLUMNS)}")
    reviews = []
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(INTERVAL_COLUMNS):
            raise DataError(
                f"{path}, line {number}: {len(cells)} columns; expected {len(INTERVAL_COLUMNS)}"
            )
        low, high = (_stars(cell, f"{path}, line {number}") for cell in cells[4:6])
        reviews.append(Review(domain_name(cells[0]), cells[6], low, high))
    return reviews


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error}); fetch it again") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}); fetch it again") from error
