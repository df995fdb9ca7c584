"""Presets with the paper's printed settings have every value of its supplement."""

from vntransfer_lab.runner.preset import check, read_preset

# Section 7.2 of the supplement, for mnistP, mnistR, fashionP and notmnistP
EWC_RATES = (0.01, 0.01, 0.01, 0.003)
PRINTED: dict[str, dict[str, tuple[float, ...]]] = {
    "sgd": {"lr": EWC_RATES},
    "ewc_squared_mean": {"lr": EWC_RATES, "strength": (100, 3, 100, 1)},
    "rsp_published": {"lr": EWC_RATES, "strength": (3, 3, 3, 3)},  # below 10
    "rsp_published_cut": {"lr": EWC_RATES, "strength": (9, 3, 9, 1)},
    "agem": {"lr": (0.01,) * 4, "margin": (0.5, 0.5, 0.5, 0)},
    "rewc_published": {"lr": (0.001,) * 4, "strength": (15, 15, 500, 5000)},  # half, see preset
    "mer": {"lr": (0.1,) * 4, "beta": (0.01, 0.01, 0.01, 0.03)},
}
PRINTED["ewc_explicit"], PRINTED["rsp_explicit"] = (
    PRINTED[method] for method in ("ewc_squared_mean", "rsp_published")
)


def test_printed_settings_are_those_of_the_supplement() -> None:
    """The value that the paper found for a stream is in the preset, and in the grids it tried."""
    preset, grids = (check(read_preset(n)[1], n) for n in ("table3-published", "table3-grids"))
    assert set(preset.methods) == set(PRINTED)
    for place, stream in enumerate(("mnistP", "mnistR", "fashionP", "notmnistP")):
        for method, own in preset.per_data[stream].items():
            values = {key: own[key] for key in PRINTED[method]}
            assert values == {key: [value[place]] for key, value in PRINTED[method].items()}
            listed = grids.methods.get(method, {})
            assert all(set(value) <= set(listed.get(key, value)) for key, value in values.items())


def test_the_published_grids_are_those_of_the_supplement() -> None:
    grids = check(read_preset("table3-grids")[1], "table3-grids").methods
    rates, strengths = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1], [10**k for k in range(5)]
    strengths = sorted([*strengths, *(3 * value for value in strengths)])
    assert grids["ewc_squared_mean"]["lr"] == grids["rewc_published"]["lr"] == rates
    assert grids["ewc_squared_mean"]["strength"] == strengths
    assert [2 * value for value in grids["rewc_published"]["strength"]] == strengths
    memory_rates = [0.001, 0.003, 0.005, 0.01, 0.03, 0.1]
    assert grids["agem"]["lr"] == grids["mer"]["lr"] == memory_rates
    assert grids["agem"]["margin"] == [0, 0.1, 0.5, 1]
    assert grids["mer"]["beta"] == [0.01, 0.03, 0.1, 0.3, 1]


def test_values_of_the_paper_are_the_same_in_both_presets() -> None:
    names = {"ewc_squared_mean": "ewc", "rewc_published": "rewc", "agem": "agem", "mer": "mer"}
    names |= dict.fromkeys(("rsp_published", "rsp_published_cut", "rsp_explicit"), "rsp")
    names["ewc_explicit"] = "ewc"
    values, again = (read_preset(n)[1]["paper"]["values"] for n in ("table3", "table3-published"))
    for stream, rows in again.items():
        assert rows[stream] == {m: values[stream][stream][name] for m, name in names.items()}
    groups, printed = (read_preset(n)[1]["paper"]["values"] for n in ("groups", "groups-published"))
    for stream, rows in printed.items():
        old = {name.replace("_published", ""): value for name, value in rows[stream].items()}
        assert old == groups[stream][stream]
