"""What the docs site has beyond docs/: pages from the root, files that pages link to, colors.

The pages are plain Markdown whose relative links work in the repository. Those that leave docs/ are
followed here: root pages become pages of the site, and any other file or folder becomes a page that
shows it, so that the site is whole without a network.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from vntransfer.pages import palette

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "quickstart.md",
    "REPRODUCIBILITY.md": "reproducibility.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".yml": "yaml", ".md": "markdown"}
SHOWN = 400_000
"""Letters up to which a file is shown."""

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme would load from the network; ours is docs/assets/worker.js."""

LINK = re.compile(r"(?P<head>\]\()(?P<path>[^)#\s:]+)(?P<tail>#[^)\s]*)?\)")
FENCE = re.compile(r"^( *```.*?^ *```[^\S\n]*$)", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)


def moved(path: str) -> str:
    """Return where a file of the repository is on the site; paths are relative to their roots.

    Examples
    --------
    >>> moved("docs/theory.md"), moved("README.md"), moved("tests/helpers/samples.py")
    ('theory.md', 'quickstart.md', 'files/tests/samples.py.md')
    """
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"files/{path}.md")


def relink(markdown: str, source: str, place: str) -> tuple[str, set[str]]:
    """Turn the relative links of a page into those of the site.

    Parameters
    ----------
    markdown
        Text of the page.
    source
        Where the page is in the repository: what its links are relative to.
    place
        Where it is on the site.

    Returns
    -------
    str
        The text with its new links and without comments (marks for the tests); code is left
        alone.
    set of str
        The files and folders outside docs/ that it links to, relative to the repository.

    Examples
    --------
    >>> relink("[test](../tests/helpers/samples.py)", "docs/claims.md", "claims.md")
    ('[test](files/tests/samples.py.md)', {'tests/helpers/samples.py'})
    """
    outside: set[str] = set()

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["path"]))
        if not path.startswith("docs/") and path not in PAGES:
            outside.add(path)
        away = posixpath.relpath(moved(path), posixpath.dirname(place) or ".")
        return f"{found['head']}{away}{found['tail'] or ''})"

    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(link, COMMENT.sub("\n", part)) for part in parts[::2]]
    return "".join(parts), outside


def shown(path: str) -> str:
    """Return a page that shows a file or lists a folder of the repository."""
    head = f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# {path}\n\n"
    full = ROOT / path
    if full.is_dir():
        rows = [
            f"| {file.relative_to(full).as_posix()} | {file.stat().st_size:,} |"
            for file in sorted(full.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        ]
        return head + "\n".join(["| file | bytes |", "| --- | --- |", *rows]) + "\n"
    text = full.read_text(encoding="utf-8")
    if len(text) > SHOWN:
        return f"{head}{len(text):,} letters: too long to be shown here.\n"
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=2))
    language = LANGUAGES.get(full.suffix, "text")
    return f"{head}{ticks} {language}\n{text.rstrip()}\n{ticks}\n"


def colors() -> str:
    """Return the site's colors: those of the pages that `vnt` writes."""
    schemes = {"light": "default", "dark": "slate"}
    rules = []
    for theme, scheme in schemes.items():
        first = palette.SERIES[theme][0] if theme == "light" else palette.SERIES[theme][5]
        values = {
            "--md-primary-fg-color": palette.SERIES["light"][0],
            "--md-primary-bg-color": "#ffffff",
            "--md-accent-fg-color": palette.SERIES[theme][1],
            "--md-default-bg-color": palette.GROUND[theme],
            "--md-default-fg-color": palette.INK[theme],
            "--md-typeset-color": palette.INK[theme],
            "--md-typeset-a-color": first,
        }
        rules.append(f'[data-md-color-scheme="{scheme}"]{{{palette.declarations(values)}}}')
    return "\n".join(rules) + "\n"


def logo(first: str, second: str) -> str:
    """Return two covariances that share a mean and differ in how y depends on x."""
    ellipse = '<ellipse cx="32" cy="32" rx="28" ry="{}" transform="rotate({} 32 32)" {}/>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" fill="none" stroke-width="6">'
        + ellipse.format(13, -55, f'stroke="{first}"')
        + ellipse.format(13, -5, f'stroke="{second}"')
        + "</svg>\n"
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, the files that any page links to, colors and logo."""

    def add(place: str, content: str) -> None:
        files.append(File.generated(config, place, content=content))

    outside: set[str] = set()
    for file in files.documentation_pages():
        outside |= relink(file.content_string, f"docs/{file.src_uri}", file.src_uri)[1]
    for source, place in PAGES.items():
        text, found = relink((ROOT / source).read_text(encoding="utf-8"), source, place)
        outside |= found
        add(place, text)
    for path in sorted(outside):
        if (ROOT / path).exists():  # else the build warns of the dead link
            add(moved(path), shown(path))
            files.src_uris[moved(path)].inclusion = InclusionLevel.NOT_IN_NAV
    add("assets/colors.css", colors())
    add("assets/logo.svg", logo("#ffffff", palette.SERIES["light"][5]))
    add("assets/favicon.svg", logo(palette.SERIES["light"][0], palette.SERIES["light"][1]))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page of docs/ into those of the site."""
    if page.file.generated_by:  # done when it was added
        return markdown
    return relink(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)[0]


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Let a page read from disk search without a network."""
    return output.replace(SHIM, get_relative_url("assets/worker.js", page.url))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Do the same for pages that are made from no Markdown."""
    return output_content.replace(SHIM, "assets/worker.js")
