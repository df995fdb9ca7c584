"""``vnt demo``: the main job on embedded data."""


def demo() -> None:
    """Relate the paper's six synthetic domains to each other (embedded data, seconds)."""
    from vntransfer.data.synthetic import friedman_domains

    print({name: x.shape for name, (x, _) in friedman_domains().items()})
