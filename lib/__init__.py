"""The machine under the pages: neural summarization of long texts.

Data flows through the package in this order: `data` (corpora, text, batches), `layers`, `models`, `train`,
`generate`, `evaluate` and `extractive`; `figures` and `checks` serve the pages.
"""
