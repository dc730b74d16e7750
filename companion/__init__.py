"""What serves the pages, the course and the site: `lib` knows nothing of it."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "lib" / "system" / "__init__.py"))  # is `lib` this project's?
