"""Code of the pages, the course and the site. It imports `lib`, never the other way round."""

import runpy
from pathlib import Path

# is `lib` this project's?
runpy.run_path(str(Path(__file__).parents[1] / "lib" / "system" / "__init__.py"))
