"""Numbers in the sentences of the docs are those of the packed results, as those in tables are."""

import re

import pytest

from lab_helpers.docs_code import ROOT, load_tool
from vntransfer_lab.reports.report import View
from vntransfer_lab.reports.tables import sort_key

# page, and the numbers that one of its paragraphs (or rows of a table) has, in any words: result
# (and, after "vs", the baseline of its tests); table; row; column; digits. Rows are named by their
# first cell, or the first two with a slash.
NOISY = "robustness; 2dplanes; 2dplanes, response=standardized, noise_on=y, spread=std, strength"
SAID = [
    (
        "README.md",
        "streams; RA; closed_form_half; mean; 1",
        "streams; RA; closed_form_half; kept (MB); 1",
    ),
    ("README.md", "streams; RA; covp; mean; 1", "streams; RA; covp; kept (MB); 1"),
    ("README.md", "streams; RA; derpp; mean; 1"),
    ("README.md", "streams; RA; er; mean; 1"),
    ("README.md", "streams; RA; rsp; mean; 1", "streams; RA; rsp; kept (MB); 1"),
    ("README.md", "streams; RA; ewc; mean; 1", "streams; RA; ewc; kept (MB); 1"),
    ("README.md", "streams; RA; sgd; mean; 1"),
    (
        "README.md",
        "closed-form-long; mnistP; covp; RA; 0",
        "closed-form-long; mnistP; closed_form_half; RA; 0",
        "closed-form-long; mnistP; closed_form_covp; RA; 0",
    ),
    (
        "docs/continual.md",
        "streams; RA; covp; mean; 1",
        "streams; RA; covp; kept (MB); 1",
        "closed-form-long; mnistP; covp; RA; 1",
    ),
    (
        "docs/continual.md",
        "streams; RA; closed_form; mean; 1",
        "streams; RA; closed_form; kept (MB); 1",
        "closed-form-long; mnistP; closed_form; RA; 1",
    ),
    (
        "docs/continual.md",
        "streams; RA; closed_form_half; mean; 1",
        "closed-form-long; mnistP; closed_form_half; RA; 1",
    ),
    (
        "docs/continual.md",
        "streams; RA; closed_form_covp; mean; 1",
        "closed-form-long; mnistP; closed_form_covp; RA; 1",
    ),
    (
        "docs/continual-methods.md",
        "streams; RA; covp; mean; 1",
        "streams; RA; kfac; mean; 1",
        "streams; RA; covp_input; mean; 1",
        "streams; RA; sgp; mean; 1",
        "streams; RA; gpm; mean; 1",
    ),
    (
        "docs/protocol.md",
        "table3-full; RA; covp; mean; 1",
        "table3-full; RA; kfac; mean; 1",
        "table3-full; RA; er; mean; 1",
        "streams; RA; covp; mean; 1",
    ),
    (
        "docs/protocol.md",
        "protocol-families; all data sets; mdd_paper; rank; 1",
        "protocol-families; all data sets; ahd_msda; rank; 1",
        "protocol-families; all data sets; align; rank; 1",
    ),
    (
        "docs/protocol.md",
        "protocol-families; all data sets; auto; families:shift=relation,seed=7001; 3",
        "protocol-families-rerun; all data sets; auto; families:shift=relation,seed=7001; 3",
        "protocol-families; all data sets; auto; families:shift=relation,seed=7002; 3",
    ),
    (
        "docs/protocol.md",
        "protocol-families; all data sets; auto; rank; 1",
    ),
    (
        "docs/protocol.md",
        "protocol-streams; RA; covp; mean; 1",
        "streams; RA; covp; mean; 1",
        "protocol-streams; RA; kfac; mean; 1",
        "protocol-streams; RA; gpm; mean; 1",
        "protocol-streams; RA; derpp; mean; 1",
        "protocol-streams; RA; er; mean; 1",
        "protocol-streams; RA; rsp; mean; 1",
        "streams; RA; rsp; mean; 1",
    ),
    (
        "docs/protocol.md",
        "protocol-adaptation; all data sets; auto; rank; 2",
        "protocol-adaptation; all data sets; dann; rank; 1",
        "protocol-adaptation; all data sets; coral; rank; 1",
        "protocol-adaptation; all data sets; boosting; rank; 1",
    ),
    (
        "docs/protocol.md",
        "protocol-adaptation; all data sets; darn; amazon4; 3",
        "protocol-adaptation; all data sets; align; amazon4; 3",
    ),
    (
        "README.md",
        "table3-published; RA; rsp_published; mean; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3-published; mnistP; rsp_explicit; LA; 1",
        "table3-published; fashionP; rsp_explicit; LA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3-published vs ewc_explicit; difference to ewc_explicit; mnistR/rsp_explicit; "
        "difference; 1",
        "table3-published vs ewc_explicit; difference to ewc_explicit; notmnistP/rsp_explicit; "
        "difference; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3-published; RA; rsp_explicit; notmnistP; 1",
    ),
    (
        "docs/claims-evidence.md",
        "amazon7i vs mdd_paper; difference to mdd_paper; amazon7i/mdan_max; p; 2",
        "amazon7i vs mdd_paper; difference to mdd_paper; amazon7i/ahd_msda; p; 2",
        "adaptation; amazon7i; mean; mdd_paper; 3",
        "adaptation; amazon7i; mean; source_only; 3",
    ),
    (
        "docs/claims-evidence.md",
        "yearpred-small vs mdd_paper; difference to mdd_paper; yearpred-small/ahd_1s; p; 2",
    ),
    (
        "docs/claims-evidence.md",
        "trancos; trancos; mean/ours; darn; 1",
        "trancos; trancos; mean/ours; source_only; 1",
    ),
    (
        "docs/claims-evidence.md",
        "synthetic-published; weights of the sources; synthetic/mdd_published; closeness; 2",
        "mdd-ablation; weights of the sources; synthetic/mdd_printed; largest; 2",
        "mdd-ablation; weights of the sources; synthetic/mdd_printed; asymmetry; 2",
        "mdd-ablation; weights of the sources; synthetic/mdd_printed; closeness; 2",
        "mdd-ablation; errors relative to source_only_5; mdd_printed; synthetic; 1",
    ),
    (
        "docs/claims-evidence.md",
        "synthetic-published; weights of the sources; synthetic/mdd_published; change; 3",
        "synthetic-paper; weights of the sources; synthetic/mdd_paper; change; 3",
        "synthetic-paper; weights of the sources; synthetic/darn; change; 3",
    ),
    (
        "docs/claims-evidence.md",
        "rsp-ablation; difference to rsp; notmnistP/rsp_constant; 95 % interval; 1",
        *(
            "groups-published vs rsp_published_20_groups; difference to rsp_published_20_groups; "
            f"{stream}/rsp_published_constant; difference; 1"
            for stream in ("mnistP", "mnistR", "fashionP", "notmnistP")
        ),
    ),
    (
        "docs/claims-evidence.md",
        "table3-published; difference to ewc_squared_mean; notmnistP/rsp_published; difference; 1",
        "table3-published; difference to ewc_squared_mean; mnistR/rsp_published; difference; 1",
        "table3-published; difference to ewc_squared_mean; mnistP/rsp_published; difference; 1",
        "table3 vs ewc; difference to ewc; fashionP/rsp_untuned; difference; 1",
        "table3 vs ewc; difference to ewc; notmnistP/rsp_untuned; difference; 1",
        "table3 vs ewc; difference to ewc; mnistP/rsp_untuned; difference; 1",
        "table3 vs ewc; difference to ewc; mnistR/rsp_untuned; difference; 1",
        "table3-full vs ewc; difference to ewc; fashionP/rsp; difference; 1",
        "table3-full vs ewc; difference to ewc; notmnistP/rsp; difference; 1",
        "table3-full vs ewc; difference to ewc; mnistP/rsp; difference; 1",
        "table3-full vs ewc; difference to ewc; mnistR/rsp; difference; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3 vs ewc; difference to ewc; fashionP/rewc; difference; 0",
        "table3 vs ewc; difference to ewc; mnistR/rewc; difference; 0",
        "table3 vs ewc; difference to ewc; notmnistP/rewc; difference; 0",
    ),
    (
        "docs/claims-evidence.md",
        "omniglot vs rsp; difference to rsp; omniglot/agem; p; 2",
        "omniglot vs rsp; difference to rsp; omniglot/mer; p; 2",
    ),
    (
        "docs/claims-evidence.md",
        "omniglot vs rewc; difference to rewc; omniglot/mer; p; 2",
        "omniglot vs rewc; difference to rewc; omniglot/agem; p; 2",
        "omniglot vs rewc; difference to rewc; omniglot/rsp; p; 3",
    ),
    (
        "docs/paper-and-us.md",
        "synthetic-published; weights of the sources; synthetic/mdd_published; change; 3",
        "synthetic-paper; weights of the sources; synthetic/darn; change; 3",
    ),
    (
        "docs/paper-and-us.md",
        "protocol-adaptation; all data sets; auto; amazon7i; 3",
        "protocol-adaptation; all data sets; source_only_5; amazon7i; 3",
    ),
    (
        "docs/claims-evidence.md",
        "robustness-labels; digits; digits, flipped=0.6; jeffreys; 3",
        "robustness-labels; digits; digits, flipped=0.6; cross_entropy; 3",
    ),
    (
        "docs/claims-evidence.md",
        "mdd-ablation; errors relative to source_only_5; mdd_printed; bike; 1",
        "mdd-ablation; errors relative to source_only_5; mdd_printed; synthetic; 1",
    ),
    (
        "docs/claims-evidence.md",
        "synthetic; weights of the sources; synthetic/ahd_msda_adam; largest; 2",
    ),
    (
        "docs/claims-evidence.md",
        "forgetting; divergence and forgetting; mnistR, max_angle=90.0; all pairs; 2",
        "forgetting; divergence and forgetting; mnistR, max_angle=180.0; all pairs; 2",
        "forgetting; divergence and forgetting; mnistP, max_angle=90.0; all pairs; 2",
        "forgetting; divergence and forgetting; fashionP, max_angle=90.0; all pairs; 2",
        "forgetting; divergence and forgetting; notmnistP, max_angle=90.0; all pairs; 2",
    ),
    (
        "docs/claims-evidence.md",
        "table3; fashionP; mer; LA; 1",
        "table3; fashionP; agem; LA; 1",
        "table3; fashionP; rsp; LA; 1",
        "table3; mnistP; mer; LA; 1",
        "table3; mnistP; agem; LA; 1",
        "table3; mnistP; rsp; LA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3-published; RA; rsp_published; fashionP; 1",
        "table3-published; RA; rsp_published; notmnistP; 1",
        "table3-published; RA; agem; notmnistP; 1",
        "table3-published; RA; ewc_squared_mean; mnistP; 1",
        "table3-published; RA; mer; mnistR; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3-published; mnistP; rsp_published; LA; 1",
        "table3-published; mnistP; agem; LA; 1",
        "table3-published; fashionP; rsp_published; LA; 1",
        "table3-published; fashionP; agem; LA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "sensitivity; summary; mnistP/rsp; mean RA; 1",
        "sensitivity; summary; mnistR/rsp; mean RA; 1",
        "sensitivity; summary; mnistP/ewc_squared_mean; mean RA; 1",
        "sensitivity; summary; mnistR/ewc_squared_mean; mean RA; 1",
        "sensitivity; summary; mnistP/ewc; mean RA; 1",
        "sensitivity; summary; mnistR/ewc; mean RA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "omniglot; omniglot; rsp; RA; 1",
        "omniglot; omniglot; agem; RA; 1",
        "omniglot; omniglot; mer; RA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "omniglot; omniglot; rewc; RA; 1",
        "omniglot; omniglot; mer; RA; 1",
        "omniglot; omniglot; agem; RA; 1",
        "omniglot; omniglot; rsp; RA; 1",
        "omniglot; omniglot; ewc; RA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "table3; fashionP; rewc; LA; 1",
        "table3; fashionP; rsp; LA; 1",
    ),
    (
        "docs/claims-evidence.md",
        "synthetic; weights of the sources; synthetic/mdd_paper; closeness; 2",
        "synthetic; weights of the sources; synthetic/align; closeness; 2",
        "synthetic; weights of the sources; synthetic/darn; closeness; 2",
        "synthetic; weights of the sources; synthetic/ahd_msda_adam; closeness; 2",
        "synthetic; weights of the sources; synthetic/ahd_msda; closeness; 2",
    ),
    (
        "docs/claims-evidence.md",
        f"{NOISY}=0.0; jeffreys; 2",
        f"{NOISY}=2.0; jeffreys; 1",
        f"{NOISY}=0.0; mse; 2",
        f"{NOISY}=2.0; mse; 1",
    ),
]


def number(place: str) -> str:
    """Look a number up and write it as the docs do, without the zero before the point."""
    tool = load_tool("make_tables")
    run, title, row, column, digits = place.split("; ")
    result, _, baseline = run.partition(" vs ")
    table = tool.find(f"lab/results/{result}", title, View(baseline))
    (found,) = (
        own
        for own in table.rows
        if row in (tool.text(own[0]), "/".join(tool.text(cell) for cell in own[:2]))
    )
    cell = found[table.header.index(column)]
    written = f"{sort_key(cell):.{digits}f}".replace("-", "−")
    return re.sub(r"^(−?)0\.", r"\1.", written)


@pytest.mark.parametrize(("page", "places"), [(page, places) for page, *places in SAID])
def test_sentences_have_the_numbers_of_the_results(page: str, places: list[str]) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    paragraphs = [set(re.findall(r"−?[\d.]*\d", part)) for part in re.split(r"\n\s*\n|\n\|", text)]
    wanted = {place: number(place) for place in places}
    assert any(found.issuperset(wanted.values()) for found in paragraphs), wanted
