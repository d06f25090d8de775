import warnings

from working_hooks import *  # noqa: F403

warnings.warn("the faulty device is deprecated", stacklevel=1)
