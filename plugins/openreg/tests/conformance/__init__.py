"""PyTorch's own operator samples, run on the CPU and on the device and compared in full.

- ``outcome.py`` runs a call and compares two runs: values, metadata, aliasing, errors, warnings.
- ``forms.py`` turns a sample into others: in other layouts, with conjugate bits, with ``out=``.
- ``known_differences.py`` is the one list of what is not the same, with the reasons.
- ``test_operators.py`` puts them together for every operator of OpInfo.

The ordinary test run takes one dtype and a few samples of each operator. ``make conformance`` takes
all of them.
"""
