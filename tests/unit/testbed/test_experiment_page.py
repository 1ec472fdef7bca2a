"""docs/experiment-file.md: its tables agree with the code, and have all keys."""

from testbed.experiment.catalogue import list_kinds
from testbed.experiment.documentation import PAGE, renewed
from testbed.sweeps.file import FIGURE_TYPES


def test_the_tables_are_up_to_date() -> None:
    """`python -m testbed.experiment.documentation` writes them."""
    page = PAGE.read_text()
    assert renewed(page) == page


def test_every_key_of_every_section_is_on_the_page() -> None:
    page = PAGE.read_text()
    keys = {setting.name for kind in list_kinds() for setting in kind.settings}
    assert not [key for key in (*keys, *FIGURE_TYPES) if f"`{key}`" not in page]


def test_every_kind_and_setting_has_a_description() -> None:
    for kind in list_kinds():
        assert kind.description, kind.kind
        assert not [s.name for s in kind.settings if not s.description], kind.kind
