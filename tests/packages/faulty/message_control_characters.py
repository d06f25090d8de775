raise RuntimeError("\x1b[31mred\x00 and half a character: \ud83d")
