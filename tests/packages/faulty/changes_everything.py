"""Changes what it can, and then fails."""

import logging
import os
import signal
import sys
import warnings

import torch

os.environ["FAULTY"] = "1"
os.environ.pop("HOME", None)
sys.path.append("/faulty")
warnings.filterwarnings("error", "faulty")
os.chdir("/")
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.basicConfig(level=logging.INFO)
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
raise OSError("after all that")
