"""The papers' claims as records (`PAPER.toml`): published effect, stored results, controls.
Verdicts, tables and pictures are computed from them."""
