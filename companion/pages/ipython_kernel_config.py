"""Read by IPython: kernels of this environment do not warn that this machine's programs could
listen to them."""

import logging

logging.getLogger("IPKernelApp").addFilter(
    lambda record: "TCP without encryption" not in record.getMessage()
)
