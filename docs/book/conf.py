"""Settings of Sphinx for the book; Scripts/book prepares its sources and runs it."""
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, String, Text

project = "sessiond"
html_title = "sessiond"
author = ""
language = "en"
# Two hyphens before an option are two hyphens.
smartquotes = False

extensions = ["myst_parser"]
# The same anchors of headings as on GitHub.
myst_heading_anchors = 4

# Pygments colours only a part of a block if it cannot read all of it.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_theme_options = {
    # Furo's own dark colours, set here because the style sheet of Debian 12's package has them only for readers who choose
    # dark by hand, not for those whose system is dark.
    "dark_css_variables": {
        "color-problematic": "#ee5151",
        "color-foreground-primary": "#ffffffcc",
        "color-foreground-secondary": "#9ca0a5",
        "color-foreground-muted": "#8b9097",
        "color-foreground-border": "#666666",
        "color-background-primary": "#131416",
        "color-background-secondary": "#1a1c1e",
        "color-background-hover": "#1e2124",
        "color-background-hover--transparent": "#1e212400",
        "color-background-border": "#303335",
        "color-background-item": "#444444",
        "color-brand-primary": "#5b9df5",
        "color-brand-content": "#6ea8f7",
        "color-highlighted-background": "#083563",
        "color-highlight-on-target": "#333300",
        "color-admonition-background": "#18181a",
    },
}
html_static_path = ["book.css"]
html_css_files = ["book.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "one-dark"


class ScenarioLexer(RegexLexer):
    """Scenario files: sessionctl-scenario(5)."""

    name = "scenario"
    tokens = {
        "root": [
            (r"#[^\n]*", Comment),
            (r'"(\\.|[^"\\\n])*"', String),
            (r"^(expect)( +not\b)?", Name.Exception),
            (r"^[a-z=-]+", Keyword),
            (r"§?[A-Za-z0-9_.:=-]+", Text),
            (r"\s+|.", Text),
        ]
    }


def setup(app):
    app.add_lexer("scenario", ScenarioLexer)
