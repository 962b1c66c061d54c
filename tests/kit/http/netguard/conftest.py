"""A scripted network for each test."""

from __future__ import annotations

import pytest

from tests.kit.http.netguard.networks import Network


@pytest.fixture
def network() -> Network:
    return Network(
        {
            "example.com": ["93.184.215.14"],
            "www.example.com": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
        }
    )
