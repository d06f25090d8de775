"""What the tests of `devhost doctor` share."""

import json
from pathlib import Path

import jsonschema
import pytest

import devhost.cli

SCHEMA = json.loads((Path(devhost.cli.__file__).parent / "doctor.schema.json").read_text())


class Diagnosis(dict):
    """What `devhost doctor --json` prints."""

    def about(self, check, subject=None):
        """Return severity, cause and remedy of the findings of a check."""
        return [
            (finding["severity"], finding["cause"], finding["remedy"])
            for finding in self["findings"]
            if finding["check"] == check and subject in (None, finding["subject"])
        ]


@pytest.fixture(scope="session")
def doctor():
    """Run `devhost doctor --json` in a site; what it prints is valid and fits the exit status."""

    def run(site, *arguments, **variables):
        result = site.devhost("doctor", "--json", *arguments, **variables)
        assert result.stderr == ""
        document = json.loads(result.stdout)
        jsonschema.validate(document, SCHEMA)
        assert result.returncode == (1 if document["severity"] == "error" else 0)
        return Diagnosis(document)

    return run
