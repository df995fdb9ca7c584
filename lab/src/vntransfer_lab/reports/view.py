"""What of a run a report shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vntransfer.checks import one_of
from vntransfer_lab.runner.preset import Preset


@dataclass(frozen=True)
class View:
    """What of a run is shown: some methods beside the baseline (all by default), and which one."""

    baseline: str = ""
    methods: Sequence[str] = ()

    def words(self) -> list[str]:
        """Return the options of the command line that say the same."""
        words = ["--baseline", self.baseline] if self.baseline else []
        return words + (["--methods", ",".join(self.methods)] if self.methods else [])

    def preset(self, preset: Preset) -> Preset:
        """Return the preset as if it had asked for just this."""
        named = [("baseline", self.baseline)] if self.baseline else []
        for argument, name in (*named, *(("methods", name) for name in self.methods)):
            one_of(argument, name, preset.methods)
        baseline = self.baseline or preset.baseline
        methods = {
            name: given
            for name, given in preset.methods.items()
            if not self.methods or name in (*self.methods, baseline)
        }
        return replace(preset, methods=methods, baseline=baseline)


EVERYTHING = View()
