import logging

from working_hooks import *  # noqa: F403

logging.basicConfig(level=logging.INFO)
