"""Presets: what is wrong is named; nothing but a PresetError ever comes out of a bad one."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.preset import Preset, check, override, read_preset, shipped

SMOKE = read_preset("smoke")[1]


def changed(path: str, value: Any) -> dict[str, Any]:
    raw = copy.deepcopy(SMOKE)
    *parents, last = path.split(".")
    place = raw
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = value
    return raw


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("seed", 3, ["smoke: ", "'seed'", "did you mean 'seeds'?"]),
        ("seeds", 0, ["smoke: seeds: ", "from 1", "got 0"]),
        ("seeds", "five", ["smoke: seeds: ", "list", "got 'five'"]),
        ("seeds", [1, 1], ["smoke: seeds: ", "given twice"]),
        ("seeds", True, ["smoke: seeds: ", "got True"]),
        ("experiment", "smok", ["experiment: ", "'smok'", "did you mean 'smoke'?"]),
        ("experiment", 3, ["smoke: experiment: ", "string", "got 3"]),
        ("experiment", ".smoke", ["experiment: ", "'.smoke'", "did you mean 'smoke'?"]),
        ("experiment", "no.such", ["experiment: cannot import 'no.such'", "No module named 'no'"]),
        ("experiment", "os.path", ["experiment: cannot import 'os.path'"]),
        ("selection", "orcale", ["smoke: selection: ", "last_epoch", "did you mean 'oracle'?"]),
        ("selection", "fixed", ["smoke: ", "'fixed' cannot choose from the grid of ridge"]),
        ("baseline", "svm", ["smoke: baseline: ", "constant, ridge, boosting", "'svm'"]),
        ("methods", {}, ["smoke: methods: name at least one of"]),
        ("methods.rige", {}, ["smoke: methods: ", "'rige'", "did you mean 'ridge'?"]),
        ("methods.ridge.alfa", 1.0, ["smoke: methods.ridge: ", "'alfa'", "did you mean 'alpha'?"]),
        ("methods.ridge.alpha", "big", ["smoke: methods.ridge.alpha: ", "number", "got 'big'"]),
        ("methods.ridge.alpha", float("nan"), ["methods.ridge.alpha: ", "finite number"]),
        ("methods.ridge.grid.alpha", 1.0, ["methods.ridge.grid.alpha: ", "list", "got 1.0"]),
        ("methods.ridge.grid.alpha", [-1], ["methods.ridge.grid.alpha: ", "equal to 0", "got -1"]),
        ("methods.boosting.rounds", 2.5, ["methods.boosting.rounds: ", "integer", "got 2.5"]),
        ("common.round", 2, ["smoke: common: ", "'round'", "did you mean 'rounds'?"]),
        ("settings.n_sample", 3, ["settings: ", "'n_sample'", "did you mean 'n_samples'?"]),
        ("settings.n_samples", 3, ["smoke: settings.n_samples: ", "equal to 10", "got 3"]),
        ("settings", 3, ["smoke: settings: ", "dictionary", "got 3"]),
        ("grid.n_samples", [], ["smoke: grid.n_samples: ", "at least 1 item", "got []"]),
        ("paper.values.synthetic.s1.svm", 1.0, ["paper.values.synthetic.s1: ", "'svm'"]),
        ("per_data.synth.ridge", {}, ["smoke: per_data: ", "'synth'", "synthetic"]),
        ("per_data.synthetic.svm", {}, ["smoke: per_data.synthetic: ", "'svm'"]),
        ("per_data.synthetic.ridge.alpha", "a", ["per_data.synthetic.ridge.alpha: ", "number"]),
        ("paper.numbers", 1.0, ["smoke: paper: ", "'numbers'"]),
        ("data", [], ["smoke: data: ", "at least 1 item"]),
        ("targets", ["s1", "s1"], ["smoke: targets: ", "given twice"]),
    ],
)
def test_errors_name_the_key_what_was_seen_and_what_is_allowed(
    path: str, value: Any, named: list[str]
) -> None:
    with pytest.raises(PresetError) as caught:
        check(changed(path, value), "smoke")
    for words in named:
        assert words in str(caught.value)


@pytest.mark.parametrize("key", ["title", "experiment", "data", "methods"])
def test_missing_keys_are_named(key: str) -> None:
    raw = {name: value for name, value in SMOKE.items() if name != key}
    with pytest.raises(PresetError, match=f"smoke: {key}: is missing"):
        check(raw, "smoke")


def test_unknown_targets_and_data_are_named_before_anything_runs() -> None:
    with pytest.raises(PresetError, match=r"targets: .* s1, s2.*'s7'"):
        expand(check(changed("targets", ["s7"]), "smoke"))
    with pytest.raises(PresetError, match=r"'synthetic'.*'amazon'"):
        expand(check(changed("data", "amazon"), "smoke"))


def test_unknown_presets_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(PresetError, match=r"'smokes'; did you mean 'smoke'\?"):
        read_preset("smokes")
    with pytest.raises(PresetError, match="cannot be read"):
        read_preset(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("title == 1")
    with pytest.raises(PresetError, match=r"not valid TOML: .*line 1"):
        read_preset(tmp_path / "bad.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PresetError, match="cannot be read"):
        read_preset(tmp_path / "binary.toml")


@pytest.mark.parametrize("name", shipped())
def test_shipped_presets_are_valid_and_survive_the_store(name: str) -> None:
    preset = check(read_preset(name)[1], name)
    assert Preset(**preset.as_dict()) == preset


def test_override_replaces_and_keeps_the_file_untouched() -> None:
    before = copy.deepcopy(SMOKE)
    raw = override(
        SMOKE,
        methods=["ridge"],
        targets=["s2"],
        seeds=[7],
        settings={"n_samples": 50, "methods.ridge.grid.alpha": [2.0], "selection": "oracle"},
    )
    preset = check(raw, "smoke")
    assert before == SMOKE
    assert (preset.methods, preset.baseline) == ({"ridge": {"alpha": 1.0}}, "")
    assert preset.grids == {"ridge": {"alpha": [2.0]}}
    assert (preset.targets, preset.seeds, preset.selection) == (("s2",), (7,), "oracle")
    assert preset.settings["n_samples"] == 50
    with pytest.raises(PresetError, match="'title' is not a table"):
        override(SMOKE, settings={"title.x": 1})


plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates()
)
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
places = st.sampled_from(
    [
        "title",
        "experiment",
        "data",
        "targets",
        "methods",
        "methods.ridge",
        "methods.ridge.alpha",
        "methods.ridge.grid",
        "methods.ridge.grid.alpha",
        "methods.boosting.rounds",
        "seeds",
        "selection",
        "baseline",
        "settings",
        "settings.n_samples",
        "grid",
        "grid.n_samples",
        "grid.validation",
        "paper",
        "paper.values",
        "paper.claim",
        "paper.values.synthetic",
        "paper.values.synthetic.s1.ridge",
        "new",
    ]
)


@settings(deadline=None)
@given(st.dictionaries(places, values, min_size=1, max_size=3))
def test_fuzzed_presets_are_accepted_or_explained(changes: dict[str, Any]) -> None:
    raw: Any = copy.deepcopy(SMOKE)
    try:
        preset = check(override(raw, settings=changes), "fuzz")
    except PresetError:
        return
    assert Preset(**preset.as_dict()) == preset


def test_a_preset_extends_a_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('extends = "smoke"\nseeds = [7]\n[methods.ridge]\nalpha = 3.0\n')
    preset = check(read_preset(own)[1], "mine")
    base = check(read_preset("smoke")[1], "smoke")
    assert preset.seeds == (7,)
    assert list(preset.methods) == ["ridge"]
    assert (preset.data, preset.settings) == (base.data, base.settings)
    own.write_text('extends = "smok"\n')
    with pytest.raises(PresetError, match=r"mine: extends.*smoke"):
        read_preset(own)
    (tmp_path / "smoke.toml").write_text('extends = "smoke"\n')
    assert read_preset(tmp_path / "smoke.toml")[1] == read_preset("smoke")[1]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_fuzzed_text_is_accepted_or_explained(text: str) -> None:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    with pytest.raises(PresetError):
        check(raw, "fuzz")
