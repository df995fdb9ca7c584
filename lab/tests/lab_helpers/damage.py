"""Damage to files as disks, kills and careless hands do it, drawn at random."""

import random
from pathlib import Path

PAGE = 4096
KINDS = ("cut", "zeroed page", "zeroed bytes", "flipped bytes", "swapped pages", "old page")


def damage(path: Path, rng: random.Random) -> str:
    """Damage a file in one way; returns which."""
    content, kind = bytearray(path.read_bytes()), rng.choice(KINDS)
    pages = max(1, len(content) // PAGE)
    place = rng.randrange(len(content))
    one, two = rng.randrange(pages) * PAGE, rng.randrange(pages) * PAGE
    if kind == "cut":
        del content[rng.choice([place, len(content) - rng.randrange(1, min(PAGE, place + 2))]) :]
    elif kind == "zeroed page":
        content[one : one + PAGE] = bytes(len(content[one : one + PAGE]))
    elif kind == "zeroed bytes":
        gap = content[place : place + rng.choice([1, 16, 300])]
        content[place : place + len(gap)] = bytes(len(gap))
    elif kind == "flipped bytes":
        for _ in range(rng.choice([1, 1, 3, 30])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "swapped pages":
        parts = bytes(content[one : one + PAGE]), bytes(content[two : two + PAGE])
        content[one : one + PAGE], content[two : two + PAGE] = parts[1], parts[0]
    else:
        content[one : one + PAGE] = content[two : two + PAGE]
    path.write_bytes(content)
    return kind
