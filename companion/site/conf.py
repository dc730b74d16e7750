"""The book: the pages as they were executed, the texts and the README as one static site, made by
`make book`."""

import os
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes

from companion.site.docstrings import setup_reference
from companion.site.references import link_equations

project = "Neural summarization of long texts"
html_title = project
extensions = ["myst_nb", "sphinx_external_toc"]
extensions += ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
external_toc_path = "companion/site/_toc.yml"
external_toc_exclude_missing = True  # what the contents do not name is no part of the book
exclude_patterns = [".*", "companion", "cache", "data", "runs"]

nb_execution_mode = "off"
nb_merge_streams = True
# texts that a cell shows have formulas and links, as the cells of text do
nb_render_markdown_format = "myst"
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"
nb_ipywidgets_js = {}  # would come from a CDN
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

# The reference (docs/reference) is made from the library's docstrings.
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
maximum_signature_line_length = 90
napoleon_numpy_docstring = False
toc_object_entries_show_parents = "hide"

html_theme = "sphinx_book_theme"
html_theme_options = {"footer_content_items": "", "navbar_persistent": "", "show_toc_level": 2}
html_context = {"default_mode": "light"}  # figures are drawn for it
html_static_path = ["static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]

# The repository, owner/name. GitHub's workflows set it; for a book that is built elsewhere, write
# it here to have links to the repository, Binder and Colab.
repository = os.environ.get("GITHUB_REPOSITORY", "")
if repository:
    branch = os.environ.get("GITHUB_REF_NAME", "main")
    address = {"repository_url": f"https://github.com/{repository}", "repository_branch": branch}
    places = {
        "binderhub_url": "https://mybinder.org",
        "colab_url": "https://colab.research.google.com",
    }
    launch = {"launch_buttons": {**places, "notebook_interface": "jupyterlab"}}
    html_theme_options |= {**address, "use_repository_button": True, **launch}

# MathJax in the form of one file, fonts and extensions inside: it is loaded from file:// as well.
mathjax = (
    Path(find_spec("sphinx-mathjax-offline").origin).parent
    / "static"
    / "mathjax"
    / "tex-svg-full.js"
)
html_static_path.append(str(mathjax))
mathjax_path = mathjax.name


def keep_equations(app, doctree):
    r"""Keep equations unchanged. Sphinx would number them, and wrap lines in split, which refuses
    \tag."""
    for equation in doctree.findall(nodes.math_block):
        equation.children = [nodes.Text(rf"\[{equation.astext()}\]")]
        equation["no-wrap"], equation["number"], equation["classes"] = True, None, []


def name_remote_pictures(app, doctree):
    """Replace a picture of another host, such as a badge, by its text: the book loads nothing from
    the network."""
    for picture in list(doctree.findall(nodes.image)):
        if "://" in picture["uri"]:
            picture.replace_self(nodes.Text(picture["alt"]))


def name_parts(app, page, template, context, doctree):
    """Give a fold the name that is written on it (WCAG 2.5.3), and make the empty corner of a table
    a cell, not a header without a name (WCAG 1.3.1)."""
    if "body" in context:
        context["body"] = context["body"].replace(' aria-label="Toggle hidden content"', "")
        for corner in ('<th class="head"><p></p></th>', "<th></th>"):  # of Markdown, of pandas
            context["body"] = context["body"].replace(corner, "<td></td>")


def setup(app):
    setup_reference(app)
    app.connect("html-page-context", name_parts)
    app.connect("doctree-read", lambda _, doctree: link_equations(doctree))
    app.connect("doctree-read", keep_equations)
    app.connect("doctree-read", name_remote_pictures)
