"""Damage as disks and downloads do it: bytes cut, flipped, and put in a wrong place."""

from collections.abc import Callable

from hypothesis import strategies as st

Damage = Callable[[bytes], bytes]


@st.composite
def damages(draw: st.DrawFn) -> Damage:
    """Draw something that damages the bytes of a file, wherever in it."""
    kind = draw(st.sampled_from(("cut", "flip", "splice", "zeros")))
    # the ends of most formats hold what the rest is understood by
    near = draw(st.sampled_from(("anywhere", "start", "end")))
    spots = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4))
    bits, span = draw(st.integers(1, 255)), draw(st.integers(1, 64))

    def place(share: float, size: int) -> int:
        reach = size if near == "anywhere" else min(size, 300)
        return int(share * reach) + (size - reach if near == "end" else 0)

    def damaged(content: bytes) -> bytes:
        made = bytearray(content)
        for share in spots:
            at = place(share, len(made))
            if kind == "cut":
                del made[at : at + span]
            elif kind == "flip":
                made[at] ^= bits
            elif kind == "splice":
                made[at:at] = content[: 4 * span]
            else:
                made[at : at + span] = bytes(min(span, len(made) - at))
        return bytes(made)

    return damaged
