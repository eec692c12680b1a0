"""Settings of dialects are read at all places with settings."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import pytest

from eastgate import Settings, SettingsError, dialects
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.settings import MeshMode


@pytest.mark.real
def test_the_public_name_knows_them_though_nothing_else_was_imported() -> None:
    program = "from eastgate import Settings; print(Settings.from_mapping({'denyOnly': 'allow'}).to_json()['denyOnly'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "allow\n"


def test_each_setting_is_of_one_dialect_and_all_are_written() -> None:
    written = Settings().to_json()
    assert len(written) == 25
    sections = [dialect.settings for dialect in dialects.DIALECTS if dialect.settings is not None]
    names = [field.name for section in sections for field in fields(section)]
    assert len(names) == len(set(names)) == 14


def test_settings_are_the_same_however_they_were_made() -> None:
    by_name = Settings.from_mapping({"denyOnly": "allow", "linkerdDefaultPolicy": "deny"})
    linkerd, gep = LinkerdSettings(InboundPolicy.DENY), GepSettings(DenyOnly.ALLOW)
    assert by_name == Settings(sections=(linkerd, gep)) == Settings(sections=(gep, linkerd))
    assert hash(by_name) == hash(Settings(sections=(linkerd, gep)))
    assert by_name.having(GepSettings()).having(LinkerdSettings()) == Settings()
    assert Settings.from_mapping(by_name.to_json()) == by_name


def test_a_section_may_refuse_contradicting_values() -> None:
    ambient = Settings.from_mapping({"meshMode": "ambient", "serviceTarget": "traffic"})
    assert ambient.mesh_mode is MeshMode.AMBIENT
    with pytest.raises(SettingsError, match="needs meshMode: ambient"):
        Settings.from_mapping({"meshMode": "sidecar"}, ambient)
    with pytest.raises(SettingsError, match="needs meshMode: ambient"):
        Settings.from_mapping({"serviceTarget": "traffic"})
