"""Runs code for a test in a fresh interpreter, one request per line; see conftest.Interpreter."""

import ast
import json
import os
import sys


def run(code: str, names: dict) -> object:
    """Execute ``code`` and return the value of its last line, if that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<test>", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<test>", "eval"), names)


def main() -> None:
    """Answer requests until the input ends."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the code prints is no answer
    names: dict = {}
    for line in sys.stdin:
        try:
            answer = {"value": run(json.loads(line), names)}
        except BaseException as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        channel.write(json.dumps(answer, default=repr) + "\n")
        channel.flush()


main()
