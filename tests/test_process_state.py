"""What becomes of changes to the process, where the fault table does not tell it already."""

import pytest

from .faults import PACKAGES

ODD = """
    import os
    from working_hooks import *

    folder = os.getcwd() if "REMOVE" in os.environ else None
    if folder is not None:
        os.chdir("/")
        os.rmdir(folder)
"""


@pytest.fixture
def odd_site(site):
    files = {
        f.name: f.read_text() for f in PACKAGES.glob("[mws]*/*.py") if f.parent.name != "faulty"
    }
    return site.add_device("faulty", "odd_hooks", {**files, "odd_hooks.py": ODD})


def test_what_the_program_has_set_before_stays(odd_site):
    with odd_site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run("import logging, os, signal, torch, devhost; log = []")
        run("logging.getLogger('devhost').addFilter(lambda r: log.append(r.getMessage()))")
        run("os.chdir('/'); torch.set_default_dtype(torch.float64)")
        run("torch.set_default_device('meta'); signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        run("logging.basicConfig(level=logging.INFO); handlers = logging.root.handlers.copy()")
        run("devhost.load()")
        assert run("devhost.status().device") == "faulty"
        assert run("log") == []
        assert run("os.getcwd()") == "/"
        assert run("[str(torch.get_default_dtype()), str(torch.ones(1).device)]") == [
            "torch.float64",
            "meta",
        ]
        assert run("signal.getsignal(signal.SIGTERM) is signal.SIG_IGN")
        assert run("logging.root.handlers == handlers and logging.root.level == logging.INFO")


def test_working_directory_that_is_gone_already(odd_site):
    # After `import torch`, which by itself fails in such a place: MKL does not find its libraries.
    with odd_site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run("import logging, os, tempfile, torch, devhost; log = []")
        run("logging.getLogger('devhost').addFilter(lambda r: log.append(r.getMessage()))")
        run("os.chdir(tempfile.mkdtemp()); os.rmdir(os.getcwd()); devhost.load()")
        assert run("torch.faulty.device_count()") == 2
        assert run("log") == []


def test_change_that_cannot_be_put_back_is_reported(odd_site):
    result = odd_site.python(
        """
        import os, tempfile
        os.chdir(tempfile.mkdtemp())
        import torch
        print(os.getcwd(), torch.ones(1, device="faulty").cpu().item())
        """,
        REMOVE="1",
    )
    assert result.stdout == "/ 1.0\n"
    (line,) = result.stderr.splitlines()
    assert "'faulty' (faulty 1.0, module odd_hooks in " in line
    assert "changed, while it was loaded, the working directory (which cannot be put back: " in line
    assert "FileNotFoundError" in line


def test_an_extension_may_set_defaults_for_its_site(odd_site):
    odd_site.add(
        "site-policy",
        "[devhost.extensions]\npolicy = policy\n",
        {
            "policy.py": """
                from devhost import hookimpl

                @hookimpl
                def devhost_activated(status):
                    import torch

                    torch.set_default_dtype(torch.float64)
            """
        },
    )
    result = odd_site.python("import torch; print(torch.get_default_dtype())")
    assert (result.stdout, result.stderr) == ("torch.float64\n", "")
