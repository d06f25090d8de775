"""Every fault of the fault table: what `import torch`, the first use and the commands say.

The messages are also compared with those that the documentation shows. After a change to one, run
``pytest test_faults.py --write-messages``, without xdist, and read the difference.
"""

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from .faults import FAULTS, GROUPS, PACKAGES, install

MESSAGES = Path(__file__).parent.parent / "docs" / "fault_messages.json"
# Messages of Python and of PyTorch change with these.
VERSIONS = {
    "python": ".".join(map(str, sys.version_info[:2])),
    "torch": importlib.metadata.version("torch").partition("+")[0],
}
# Seconds that a plugin which never ends may take in a command: many times what others need.
LIMIT = {"list": "8", "doctor": "25"}

# A program that imports torch and reports: what has changed in the process, what devhost says, and
# what becomes of the first use.
TRIAL = """
import json, logging, os, signal, sys, threading, warnings

def process():
    return {
        "working directory": os.getcwd(),
        "HOME": os.environ.get("HOME"),
        "FAULTY": os.environ.get("FAULTY"),
        "path": sys.path.copy(),
        "filters": [f for f in warnings.filters if f[1] and f[1].pattern == "faulty"],
        "SIGINT": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "SIGTERM": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        "handlers": logging.root.handlers.copy(),
        "level": logging.root.level,
        "threads": [thread.name for thread in threading.enumerate()],
    }

def outcome(use):
    try:
        return str(use())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

before = process()
import IMPORTS
import torch
after = process()
import devhost

status = devhost.status()
plugin = status.plugins[0]
registered = torch._C._dispatch_has_kernel_for_dispatch_key
print()  # after what the plugin has printed
print(json.dumps({
    "changed": {name: after[name] for name in after if after[name] != before[name]},
    "defaults": [str(torch.get_default_dtype()), str(torch.get_default_device())],
    "sum": torch.ones(2).sum().item(),
    "slot": status.slot,
    "state": str(plugin.state),
    "reason": plugin.reason,
    "traceback": plugin.traceback,
    "kernels": registered("aten::add.Tensor", "PrivateUse1"),
    "operator": hasattr(torch.ops.faulty, "twice"),
    "module": outcome(lambda: getattr(torch, plugin.name)),
    "has_module": hasattr(torch, plugin.name),
    "first_use": outcome(lambda: torch.ones(1, device="faulty").cpu().item()),
}))
"""

DEADLY = [name for name, fault in FAULTS.items() if fault.ending != 0]
SURVIVED = [name for name in FAULTS if name not in DEADLY]
HANGING = [name for name, fault in FAULTS.items() if fault.ending is None]


@pytest.fixture
def faulty_site(site, request):
    """An environment with the faulty plugin that the test is about."""
    install(site, request.getfixturevalue("name"))
    return site


@pytest.fixture
def compare(request, site):
    """Compare messages with those that the documentation shows, or write them down for it."""

    def compare(name, **found):
        text = json.dumps(found)
        exact = ".".join(map(str, sys.version_info[:3])), importlib.metadata.version("torch")
        for varying, shown in zip(
            (str(site.root), *exact), ("/site", *VERSIONS.values()), strict=True
        ):
            text = text.replace(varying, shown)
        document = json.loads(MESSAGES.read_text())
        if request.config.getoption("write_messages"):
            write_messages(document, name, json.loads(text))
        elif document["versions"] == VERSIONS:
            shown = document["faults"][name]
            assert {key: shown.get(key) for key in found} == json.loads(text)

    return compare


def write_messages(document, name, found):
    faults = document["faults"] if document["versions"] == VERSIONS else {}
    faults[name] = {**faults.get(name, {}), **found}
    faults = {
        name: {**faults.get(name, {}), "group": group, "title": fault.title}
        for group, members in GROUPS.items()
        for name, fault in members.items()
    }
    document = {"versions": VERSIONS, "faults": faults}
    MESSAGES.write_text(json.dumps(document, indent=1) + "\n")


def lines_of(result):
    return [line for line in result.stderr.splitlines() if line.startswith("devhost: ")]


@pytest.mark.parametrize("name", SURVIVED)
def test_import_torch(faulty_site, compare, name):
    fault = FAULTS[name]
    result = faulty_site.python(TRIAL.replace("IMPORTS", fault.imports), *fault.options)
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout.splitlines()[-1])

    # torch and the process are as they would be without the plugin.
    assert outcome["sum"] == 2.0
    assert outcome["changed"] == fault.kept
    assert outcome["defaults"] == ["torch.float32", "cpu"]

    # What is wrong is logged in one line, with who it is.
    lines = lines_of(result)
    errors = [line for line in lines if not any(words in line for words in fault.warning)]
    assert len(errors) == (bool(fault.cause) and fault.logged)
    assert len(lines) - len(errors) == bool(fault.warning)
    for line in lines:
        for words in (*fault.cause, *fault.log) if line in errors else fault.warning:
            assert words in line
        assert len(line) < 2000
        assert line.isprintable()
        if fault.state != "not selected":
            assert f"' ({name} 1.0, module " in line

    # The status has it too.
    assert outcome["state"] == fault.state
    reason = " ".join(outcome["reason"].split())
    for words in fault.cause:
        assert words in reason
    assert (outcome["traceback"] is not None) == (fault.state == "failed")

    # The first use fails as torch has it, where there is no device, while torch.faulty explains.
    assert outcome["slot"] == fault.slot
    for words in fault.first_use or ("1.0",):
        assert words in outcome["first_use"]
    absent = fault.state not in ("activated", "unavailable")
    if absent:
        assert outcome["kernels"] is outcome["operator"] is False
    assert outcome["has_module"] is (not absent or fault.has_module)
    if not outcome["has_module"]:
        assert f"its plugin is installed, but {fault.state}: " in outcome["module"]
        for words in fault.cause:
            assert words in outcome["module"]
    first_use = outcome["first_use"].splitlines()[0]  # PyTorch lists all its backends below
    compare(name, log=lines, first_use=first_use)


@pytest.mark.parametrize("name", sorted(set(DEADLY) - set(HANGING)))
def test_import_torch_that_does_not_come_back(faulty_site, compare, name):
    fault = FAULTS[name]
    result = faulty_site.python(TRIAL.replace("IMPORTS", fault.imports))
    assert result.returncode == fault.ending
    for words in fault.error:
        assert words in result.stderr.splitlines()[-1]
    assert lines_of(result) == []
    compare(name, ending=ending_of(result.returncode), error=result.stderr.splitlines()[-1:])

    back = faulty_site.python("import torch; print(torch.ones(2).sum().item())", **fault.without)
    assert (back.stdout, back.stderr) == ("2.0\n", "")


@pytest.mark.parametrize("name", HANGING)
def test_import_torch_that_never_ends(faulty_site, compare, name):
    process = subprocess.Popen(
        faulty_site.command("-c", "import torch"),
        env=faulty_site.environ({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()  # the plugin has begun
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    # Whoever presses Ctrl-C sees what took so long.
    assert f"{name}.py" in errors
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    compare(name, ending="waits until Ctrl-C is pressed", error=errors.splitlines()[-1:])

    back = faulty_site.python(
        "import torch; print(torch.ones(2).sum().item())", DEVHOST_DEVICE="none"
    )
    assert (back.stdout, back.stderr) == ("2.0\n", "")


def ending_of(status):
    if status >= 0:
        return f"ends with exit status {status}"
    return f"ends with {signal.Signals(-status).name}"


@pytest.fixture(scope="module")
def together(tmp_path_factory, base, module_site):
    """What a command says where all faulty plugins are installed side by side.

    The processes of xdist share one answer, because it takes a while.
    """

    def entries(command, key, status):
        folder = tmp_path_factory.getbasetemp()
        folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
        file = folder / f"faults-{command}.json"
        with FileLock(f"{file}.lock"):
            if not file.exists():
                found = []
                others = set(FAULTS) - set(HANGING)
                for names, limit in ((HANGING, LIMIT[command]), (others, "100")):
                    site = type(module_site)(tmp_path_factory.mktemp(command), base)
                    for name in names:
                        install(site, name)
                    result = site.devhost(command, "--json", "--timeout", limit, timeout=500)
                    assert result.returncode == status, result.stderr
                    found += json.loads(result.stdout.replace(str(site.root), "/site"))[key]
                file.write_text(json.dumps(found))
        return json.loads(file.read_text())

    return entries


@pytest.mark.parametrize("name", FAULTS)
def test_list(together, compare, name):
    fault = FAULTS[name]
    rows = [r for r in together("list", "plugins", 0) if is_of(r["distribution"], name)]
    assert rows
    row = next((row for row in rows if row["status"] == fault.status), rows[0])
    assert row["status"] == fault.status
    for words in fault.cause if fault.reason is None else fault.reason:
        assert words in row["reason"]
    compare(name, list=[row["status"], row["reason"]])


def is_of(distribution, name):
    # Without METADATA, its folder tells what a distribution is called.
    return distribution == name or Path(distribution).name == f"{name}-1.0.dist-info"


@pytest.fixture(scope="module")
def doctor(module_site, together):
    """The findings of `devhost doctor` where all faulty plugins are installed side by side."""
    if "doctor" not in module_site.devhost("--help").stdout:
        pytest.skip("there is no `devhost doctor` yet")
    return together("doctor", "findings", 1)


@pytest.mark.parametrize("name", FAULTS)
def test_doctor(doctor, compare, name):
    severity, words = expected_of_doctor(FAULTS[name])
    found = {}
    for finding in doctor:
        text = f"{finding['cause']} {finding['remedy']}"
        # All have a device of the same name here, which is a finding about each of them.
        about = re.search(rf"\b{name}\b", text) and "plugins have a device named" not in text
        if about and all(word in text for word in words):
            found.setdefault(finding["severity"], finding["cause"])
    assert severity in found
    worst = next(grade for grade in ("error", "warning", "ok") if grade in found)
    assert worst == severity
    compare(name, doctor=[severity, found[severity]])


def expected_of_doctor(fault):
    """Return the severity of the finding about a plugin, and words of its cause or remedy.

    `devhost doctor` activates each plugin alone, in a process of its own, and tests its device.
    """
    if fault.ending is None:
        return "error", [f"did not finish within {LIMIT['doctor']} s"]
    if fault.ending < 0 and not fault.error:
        return "error", [f"crashed with {signal.Signals(-fault.ending).name}"]
    if fault.ending != 0:
        return "error", fault.error or fault.reason
    if fault.alone is not None:
        return fault.alone, ()
    if fault.state == "failed":
        return "error", fault.cause
    if fault.status == "shadowed":
        return "warning", ["hidden by the copy in"]
    if "its hook module imports torch" in str(fault.reason):
        return "warning", fault.warning or ["its hook module", "imports torch"]
    if fault.state == "unavailable" or fault.warning:
        return "warning", fault.warning or fault.reason
    return "ok", ["works"]


def test_every_fixture_is_tried():
    modules = {path.stem for path in PACKAGES.glob("faulty/*.py")}
    assert modules - {"circular_own_kernels"} <= set(FAULTS)


def test_the_page_shows_the_whole_table():
    page = (MESSAGES.parent / "faults.md").read_text()
    assert [group for group in GROUPS if f"\n.. devhost-faults:: {group}\n" not in page] == []
    document = json.loads(MESSAGES.read_text())
    shown = [(fault["group"], name, fault["title"]) for name, fault in document["faults"].items()]
    assert shown == [
        (group, name, fault.title)
        for group, members in GROUPS.items()
        for name, fault in members.items()
    ]
    if document["versions"] != VERSIONS:
        pytest.skip(
            f"written with {document['versions']}, so not compared with those of {VERSIONS}"
        )
