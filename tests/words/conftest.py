"""Names to test on."""

import pytest

from scenegpi.vocabulary import Vocabulary


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(["dog", "man", "street", "traffic light"], ["on", "wearing", "next to"])
