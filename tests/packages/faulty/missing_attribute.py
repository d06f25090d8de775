"""Its entry point asks for ``plugin``, which is not here."""
