"""Generate the table of houses that comes with the package (`python tools/make_example.py`).

Seven towns, prices in thousands. Four lie inland and three on the coast: there, closeness to the
water is dear and a garden worth less. The prices of one coastal town, Saltby, are withheld; they
are in a separate file, to compare with afterwards. All of it is invented.
"""

import csv
import io
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "src" / "vntransfer" / "tables" / "examples"
INLAND = {"Ashford": 24.0, "Millbrook": 27.0, "Oakhampton": 31.0, "Thornbury": 36.0}
COAST = {"Harbourne": 26.0, "Kelsea": 33.0, "Saltby": 29.0}
TARGET = "Saltby"
HEADER = ["id", "town", "kind", "area", "rooms", "garden", "built", "water_km", "income", "energy"]
HEADER += ["listed", "price"]


def rows(n: int = 170, seed: int = 2024) -> list[list[str]]:
    """Make n houses per town, in mixed order."""
    rng = np.random.default_rng(seed)
    made = []
    for town, income in {**INLAND, **COAST}.items():
        sea = town in COAST
        kinds = rng.choice(
            ["flat", "terrace", "house"], n, p=[0.6, 0.3, 0.1] if sea else [0.2, 0.4, 0.4]
        )
        area = np.exp(
            rng.normal(np.where(kinds == "house", 4.9, np.where(kinds == "flat", 4.1, 4.5)), 0.22)
        )
        garden = rng.random(n) < np.where(kinds == "flat", 0.08, 0.8)
        built = rng.integers(1900, 2024, n) if sea else rng.integers(1950, 2024, n)
        water = rng.gamma(2.0, 0.9 if sea else 9.0, n)
        local = rng.normal(income, 3.0, n)
        month = rng.integers(0, 730, n)
        energy = np.clip(np.round((2024 - built) / 22 + rng.normal(0, 1.0, n)), 0, 6).astype(int)
        per_meter = 1.1 + 0.045 * local - 0.04 * energy + 0.15 * (kinds == "house")
        price = per_meter * area + 0.02 * month
        price += np.where(garden, 8.0 if sea else 30.0, 0.0)
        if sea:
            price += 110.0 * np.exp(-water / 1.2) + 0.25 * (1960 - np.minimum(built, 1960))
        price *= np.exp(rng.normal(0, 0.07, n))
        for i in range(n):
            day = np.datetime64("2022-01-01") + int(month[i])
            made.append(
                [
                    town,
                    kinds[i],
                    f"{area[i]:.0f}",
                    f"{max(1, round(area[i] / 26 + rng.normal(0, 0.5)))}",
                    "yes" if garden[i] else "no",
                    "" if rng.random() < 0.05 else str(built[i]),
                    f"{water[i]:.1f}",
                    f"{local[i]:.1f}",
                    "" if rng.random() < 0.08 else "ABCDEFG"[energy[i]],
                    str(day),
                    f"{price[i]:.1f}",
                ]
            )
    order = rng.permutation(len(made))
    return [[str(place), *made[i]] for place, i in enumerate(order, start=1001)]


def files() -> dict[str, str]:
    """Give both files as text: the table, and the prices withheld from it."""
    every = rows()
    hidden = [row for row in every if row[1] == TARGET]
    shown = [[*row[:-1], "" if row[1] == TARGET else row[-1]] for row in every]
    return {"houses.csv": _csv(shown), "houses_saltby.csv": _csv(hidden)}


def _csv(lines: list[list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(lines)
    return text.getvalue()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {len(text)} bytes")
