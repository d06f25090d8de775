"""Extensions: `devhost_select` and `devhost_activated`."""

SITE_CHOICE = """
from devhost import hookimpl

@hookimpl
def devhost_select(candidates):
    print("asked for", [(c.name, c.distribution, c.version) for c in candidates])
    return {choice}

@hookimpl
def devhost_activated(status):
    print("activated", status.device, [str(p.state) for p in status.plugins])
"""

SHOW = "import torch, devhost; print(devhost.status().choice); print(devhost.status().device)"


def add_extension(site, source, name="choice"):
    return site.add(
        f"{name}-ext", f"[devhost.extensions]\n{name} = {name}_ext\n", {f"{name}_ext.py": source}
    )


def test_site_chooses_and_observes(site):
    site.add_package("sound").add_package("minimal")
    add_extension(site, SITE_CHOICE.format(choice="'sound'"))
    result = site.python(SHOW)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "asked for [('faulty', 'sound', '1.0'), ('minimal', 'minimal', '1.0')]",
        "activated faulty ['activated', 'not selected']",
        "the site's devhost_select chose 'sound'",
        "faulty",
    ]
    listed = site.devhost("list")
    assert "activates device 'faulty': the site's devhost_select chose 'sound'" in listed.stdout


def test_variable_overrules_the_site(site):
    site.add_package("sound").add_package("minimal")
    add_extension(site, SITE_CHOICE.format(choice="'sound'"))
    result = site.python(SHOW, DEVHOST_DEVICE="minimal")
    assert result.stdout.splitlines() == [
        "activated minimal ['not selected', 'activated']",
        "DEVHOST_DEVICE=minimal",
        "minimal",
    ]


def test_site_that_names_what_is_not_there(site):
    site.add_package("minimal")
    add_extension(site, SITE_CHOICE.format(choice="'minimall'"))
    result = site.python(SHOW)
    assert result.stdout.splitlines()[-1] == "None"
    assert "devhost_select chose 'minimall': no device plugin 'minimall'" in result.stderr
    assert "Did you mean 'minimal'?" in result.stderr


def test_faulty_extensions_are_reported_and_skipped(site):
    site.add_package("minimal")
    add_extension(site, "raise SystemExit('gone')", "exits")
    add_extension(site, "def devhost_selct(candidates): pass", "misspelled")
    add_extension(site, "", "empty")
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl
        def devhost_activated(status):
            raise ZeroDivisionError("while observing")
        """,
        "raises",
    )
    result = site.python(
        """
        import torch, devhost
        for e in devhost.status().extensions:
            print(e.name, e.state)
        print(devhost.status().device, torch.ones(1, device="minimal").cpu().item())
        """
    )
    assert result.stdout.splitlines() == [
        "empty failed",
        "exits failed",
        "misspelled failed",
        "raises activated",
        "minimal 1.0",
    ]
    log = result.stderr.splitlines()
    assert len(log) == 4
    assert "it implements no hook" in log[0]
    assert "SystemExit: gone" in log[1]
    assert "devhost_selct() is no hook of devhost, did you mean devhost_select?" in log[2]
    assert "devhost_activated() failed after 'minimal'" in log[3]
    assert "ZeroDivisionError: while observing" in log[3]


def test_select_that_raises_activates_nothing(site):
    site.add_package("minimal")
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl
        def devhost_select(candidates):
            raise LookupError("no table")
        """,
    )
    result = site.python(SHOW)
    assert result.stdout.splitlines()[-1] == "None"
    assert "an extension's devhost_select failed: LookupError: no table" in result.stderr


def test_extension_may_wrap_a_hook_of_the_device(site):
    site.add_package("minimal")
    add_extension(
        site,
        """
        import dataclasses
        from devhost import hookimpl

        @hookimpl(wrapper=True)
        def devhost_probe():
            result = yield
            return dataclasses.replace(result, available=False, reason="closed on Sundays")
        """,
    )
    result = site.python(
        "import torch, devhost; print(torch.minimal.is_available());"
        "print(devhost.status().plugins[0].reason)"
    )
    assert result.stdout.splitlines() == ["False", "closed on Sundays"]
