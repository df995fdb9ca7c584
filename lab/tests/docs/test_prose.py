"""Numbers in the sentences of the docs are those of the packed results, as those in tables are."""

import re

import pytest

from lab_helpers.docs_code import ROOT, load_tool
from vntransfer_lab.reports.statistics import Estimate

# page, and what it says with {result; table; row; column; digits} in place of each number; rows are
# named by their first cell, or by the first two with a slash between
SAID = [
    (
        "README.md",
        "keeps an accuracy of {streams; RA; covp; mean; 0} % over the paper's four streams without "
        "a stored sample, RSP {streams; RA; rsp; mean; 0} % (with a search at full length "
        "{table3-full; RA; covp; mean; 0} and {table3-full; RA; rsp; mean; 0} %;",
    ),
    (
        "README.md",
        "and {covp-long; RA; covp; mnistP, n_tasks=50; 0} % after fifty tasks of permuted MNIST "
        "(one seed), plain training {covp-long; RA; sgd; mnistP, n_tasks=50; 0} %",
    ),
    (
        "docs/protocol.md",
        "1. it is, {table3-full; RA; covp; mean; 1} against {table3-full; RA; kfac; mean; 1} of "
        "the next, `kfac`; 2. it is, `er` has {table3-full; RA; er; mean; 1}; 3. it has "
        "{streams; RA; covp; mean; 1};",
    ),
    (
        "docs/protocol.md",
        "with five networks and the same choice, has "
        "{protocol-families; all data sets; mdd_paper; rank; 1}, `ahd_msda` "
        "{protocol-families; all data sets; ahd_msda; rank; 1} and `align` "
        "{protocol-families; all data sets; align; rank; 1}.",
    ),
    (
        "docs/protocol.md",
        "its mean rank is {protocol-families; all data sets; auto; rank; 1}:",
    ),
    (
        "docs/protocol.md",
        "`covp` has {protocol-streams; RA; covp; mean; 1} ({streams; RA; covp; mean; 1} there), "
        "above every other regularizer in the mean (`kfac` {protocol-streams; RA; kfac; mean; 1}, "
        "`gpm` {protocol-streams; RA; gpm; mean; 1}) and above replay (`derpp` "
        "{protocol-streams; RA; derpp; mean; 1}, `er` {protocol-streams; RA; er; mean; 1}); RSP "
        "has {protocol-streams; RA; rsp; mean; 1} ({streams; RA; rsp; mean; 1} there).",
    ),
    (
        "docs/protocol.md",
        "`auto` and `align` have the lowest mean rank of all "
        "({protocol-adaptation; all data sets; auto; rank; 2} each; "
        "`dann` {protocol-adaptation; all data sets; dann; rank; 1}, "
        "`coral` {protocol-adaptation; all data sets; coral; rank; 1}, "
        "`boosting` {protocol-adaptation; all data sets; boosting; rank; 1})",
    ),
    (
        "docs/protocol.md",
        "DARN has an error of {protocol-adaptation; all data sets; darn; amazon4; 3}, 19 % below "
        "that of source-only, and moment alignment "
        "{protocol-adaptation; all data sets; align; amazon4; 3}",
    ),
    (
        "docs/claims.md",
        "({robustness-labels; digits; digits, flipped=0.6; jeffreys; 3} against "
        "{robustness-labels; digits; digits, flipped=0.6; cross_entropy; 3} accuracy at 60 %)",
    ),
    (
        "docs/claims.md",
        "(errors {mdd-ablation; errors relative to source_only_5; mdd_printed; bike; 1} and "
        "{mdd-ablation; errors relative to source_only_5; mdd_printed; synthetic; 1} times as "
        "high)",
    ),
    (
        "docs/claims.md",
        "they are (largest {synthetic; weights of the sources; synthetic/ahd_msda_adam; largest; 2}"
        " where equal ones are .20)",
    ),
    (
        "docs/claims.md",
        "+{forgetting; divergence and forgetting; mnistR, max_angle=90.0; all pairs; 2} on mnistR "
        "over 90 degrees, {forgetting; divergence and forgetting; mnistR, max_angle=180.0; "
        "all pairs; 2} over 180, +{forgetting; divergence and forgetting; mnistP, max_angle=90.0; "
        "all pairs; 2}, +{forgetting; divergence and forgetting; fashionP, max_angle=90.0; "
        "all pairs; 2} and {forgetting; divergence and forgetting; notmnistP, max_angle=90.0; "
        "all pairs; 2} on the permuted streams",
    ),
    (
        "docs/claims.md",
        "({table3; fashionP; mer; LA; 1} and {table3; fashionP; agem; LA; 1} against "
        "{table3; fashionP; rsp; LA; 1} on fashionP, {table3; mnistP; mer; LA; 1} and "
        "{table3; mnistP; agem; LA; 1} against {table3; mnistP; rsp; LA; 1} on mnistP)",
    ),
    (
        "docs/claims.md",
        "its mean RA is {sensitivity; summary; mnistP/rsp; mean RA; 1} and "
        "{sensitivity; summary; mnistR/rsp; mean RA; 1} on mnistP and mnistR, that of EWC with "
        "explicit steps {sensitivity; summary; mnistP/ewc_squared_mean; mean RA; 1} and "
        "{sensitivity; summary; mnistR/ewc_squared_mean; mean RA; 1} (a quarter of its runs "
        "diverge), with proximal steps {sensitivity; summary; mnistP/ewc; mean RA; 1} and "
        "{sensitivity; summary; mnistR/ewc; mean RA; 1}.",
    ),
    (
        "docs/claims.md",
        "its RA, {omniglot; omniglot; rsp; RA; 1}, is below that of A-GEM ({omniglot; omniglot; "
        "agem; RA; 1}, raw p = .02) and MER ({omniglot; omniglot; mer; RA; 1}",
    ),
    (
        "docs/claims.md",
        "it has the best RA of the paper's five: {omniglot; omniglot; rewc; RA; 1} against "
        "{omniglot; omniglot; mer; RA; 1} of MER (raw p = .02), {omniglot; omniglot; agem; RA; 1} "
        "of A-GEM (.03) and {omniglot; omniglot; rsp; RA; 1} of RSP (.006), level with EWC "
        "({omniglot; omniglot; ewc; RA; 1} ± 3.4)",
    ),
    (
        "docs/claims.md",
        "R-EWC's LA on none but fashionP ({table3; fashionP; rewc; LA; 1} against "
        "{table3; fashionP; rsp; LA; 1})",
    ),
    (
        "docs/claims.md",
        "the correlation with closeness is "
        "{synthetic; weights of the sources; synthetic/mdd_paper; closeness; 2} (paper's form) and "
        "{synthetic; weights of the sources; synthetic/align; closeness; 2} (ours) against "
        "{synthetic; weights of the sources; synthetic/darn; closeness; 2} (DARN) and "
        "{synthetic; weights of the sources; synthetic/ahd_msda_adam; closeness; 2} (AHD-MSDA "
        "moved by Adam). With plain gradient steps AHD-MSDA has "
        "{synthetic; weights of the sources; synthetic/ahd_msda; closeness; 2} ± .04",
    ),
    (
        "docs/claims.md",
        "the error grows from {robustness; 2dplanes; 2dplanes, response=standardized, noise_on=y, "
        "spread=std, strength=0.0; jeffreys; 2} to {robustness; 2dplanes; 2dplanes, "
        "response=standardized, noise_on=y, spread=std, strength=2.0; jeffreys; 1} for √J and from "
        "{robustness; 2dplanes; 2dplanes, response=standardized, noise_on=y, spread=std, "
        "strength=0.0; mse; 2} to {robustness; 2dplanes; 2dplanes, response=standardized, "
        "noise_on=y, spread=std, strength=2.0; mse; 1} for MSE",
    ),
]


def number(place: re.Match[str]) -> str:
    """Look a number up and write it as the docs do, without the zero before the point."""
    tool = load_tool("make_tables")
    result, title, row, column, digits = (part.strip() for part in place[1].split(";"))
    table = tool.find(f"lab/results/{result}", title)
    (found,) = (
        own
        for own in table.rows
        if row in (tool.text(own[0]), "/".join(tool.text(cell) for cell in own[:2]))
    )
    cell = found[table.header.index(column)]
    value = cell.mean if isinstance(cell, Estimate) else float(str(cell).split()[0])
    written = f"{value:.{digits}f}".replace("-", "−")
    return re.sub(r"^(−?)0\.", r"\1.", written)


@pytest.mark.parametrize(("page", "sentence"), SAID)
def test_sentences_say_what_the_results_say(page: str, sentence: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert re.sub(r"\{([^{}]+)\}", number, sentence) in text
