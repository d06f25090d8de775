import no_such_dependency  # noqa: F401
