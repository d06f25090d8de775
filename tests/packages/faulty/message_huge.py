raise RuntimeError("first line\nsecond line\n" + "x" * 1_000_000)
