"""The table of papers: complete, without collisions, and loaded only as far as required."""

import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

import analysis.claims
from analysis.claims import (
    PAPERS,
    SCALES,
    Catalogue,
    Claim,
    ClaimResult,
    Finding,
    Paper,
    Request,
    Section,
    Source,
    SweepFiles,
    UnknownClaim,
    find_claims,
    list_claims,
)
from analysis.claims.page import compose

FOLDER = Path(next(iter(analysis.claims.__path__)))


def unlisted(folder: Path, papers: Iterable[Paper]) -> set[str]:
    """Packages below the folder of claims that are in no paper of a table."""
    return {path.parent.name for path in folder.glob("*/__init__.py")} - {p.folder for p in papers}


def stray_claims(papers: Iterable[Paper]) -> set[str]:
    """Claims that a module of a paper defines but its catalogue lacks."""
    stray = set()
    for paper in papers:
        package = import_module(paper.module.rpartition(".")[0])
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(import_module(found.name)).values():
                some = value if isinstance(value, tuple) else (value,)
                claims = [one for one in some if isinstance(one, Claim)]
                stray |= {one.id for one in claims if one not in paper.catalogue.claims}
    return stray


def wrong_ids(catalogues: Sequence[tuple[str, Catalogue]]) -> list[str]:
    """Ids of several claims, and ids that do not begin with the letter of their paper."""
    ids = [(group, claim.id) for group, found in catalogues for claim in found.claims]
    counted = Counter(name for _, name in ids)
    return [n for g, n in ids if counted[n] > 1 or not re.fullmatch(rf"{g}[1-9]\d*", n)]


def a_claim(claim_id: str) -> Claim:
    return Claim(claim_id, "", "", "", "", (Source("x", ()),), lambda _: Finding(()))


def a_catalogue(*ids: str) -> Catalogue:
    return Catalogue((Section("1", tuple(map(a_claim, ids))),), {}, {})


def test_every_folder_of_claims_is_in_the_table() -> None:
    assert unlisted(FOLDER, PAPERS) == set()
    assert unlisted(FOLDER, PAPERS[1:]) == {PAPERS[0].folder}
    assert stray_claims(PAPERS) == set()


def test_a_claim_missing_in_its_catalogue_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis.claims.generators import relations

    monkeypatch.setattr(relations, "FORGOTTEN", a_claim("G99"), raising=False)
    assert stray_claims(PAPERS) == {"G99"}


def test_ids_are_unique_and_begin_with_the_letter_of_their_paper() -> None:
    catalogues = [(paper.group, paper.catalogue) for paper in PAPERS]
    assert wrong_ids(catalogues) == []
    assert len({paper.group for paper in PAPERS}) == len(PAPERS)
    assert wrong_ids([("S", a_catalogue("S1", "S2", "S1"))]) == ["S1", "S1"]
    assert wrong_ids([("S", a_catalogue("S1")), ("B", a_catalogue("B1", "S2"))]) == ["S2"]


def test_every_paper_has_every_scale_of_every_source() -> None:
    for paper in PAPERS:
        catalogue = paper.catalogue
        sources = {source.experiment for c in catalogue.claims for source in c.sweeps}
        assert set(catalogue.scales) == set(catalogue.changes) == set(SCALES)
        assert all(set(changes) == sources for changes in catalogue.changes.values())
        assert {computation.name for computation in catalogue.computations} <= sources


def test_computations_have_the_figures_and_seeds_that_claims_name() -> None:
    for paper in PAPERS:
        for claim in paper.catalogue.claims:
            for source in claim.sweeps:
                computation = paper.catalogue.computation(source.experiment)
                if computation is None:
                    continue
                assert set(source.figures) <= {figure.name for figure in computation.figures}
                for scale in SCALES:
                    changed = computation.change(paper.catalogue.changes[scale][computation.name])
                    assert len(changed.seeds) >= 3
                    assert any(source.needs(point.values) for point in changed.points)


def test_no_two_papers_have_a_source_of_the_same_name() -> None:
    names = [name for paper in PAPERS for name in paper.catalogue.changes["paper"]]
    assert len(names) == len(set(names))


def test_shared_modules_import_no_claim() -> None:
    for path in FOLDER.glob("*.py"):
        assert re.findall(r"\b[A-Z]\d+\b", path.read_text()) == [], path.name


def test_ids_and_groups_are_found_in_the_order_of_the_table() -> None:
    assert [claim.id for claim in find_claims(["g", "T12", "t3"])] == ["T3", "T12", "G1", "G2"]
    assert find_claims(["T", "T1"]) == list(PAPERS[0].catalogue.claims)
    assert find_claims() == [claim for paper in PAPERS for claim in paper.catalogue.claims]


@pytest.mark.parametrize("text", ["X1", "12", "T0", "TT", ""])
def test_an_unknown_id_is_reported_with_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownClaim) as caught:
        find_claims(["G1", text])
    known = ", ".join(claim.id for claim in find_claims())
    groups = ", ".join(paper.group for paper in PAPERS)
    expected = f"{text}: expected one of {known}, or all of a paper: {groups}"
    assert str(caught.value).partition(";")[0] == expected


def test_claims_are_listed_with_paper_and_section() -> None:
    listed = [(p.group, s.name, c.id) for p, s, c in list_claims(find_claims(["G2", "T12", "T6"]))]
    assert listed == [
        ("T", "6.1 Performance of TDO", "T6"),
        ("T", "1 Introduction", "T12"),
        ("G", "GT-ITM: transit-stub", "G2"),
    ]


def test_only_requested_papers_are_loaded() -> None:
    script = (
        "import sys; from analysis.claims import find_claims; find_claims(['G1']); "
        "print([name for name in sys.modules if name.startswith('analysis.claims.topology')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=FOLDER / "../..",
    )
    assert done.stdout.strip() == "[]"


def test_a_page_of_two_papers_names_both_and_their_sources(tmp_path: Path) -> None:
    chosen = find_claims(["T12", "G1"])
    results = [ClaimResult(claim, Finding(()), 7, 0, {}) for claim in chosen]
    files = {
        "example1": SweepFiles("example1", tmp_path, 7),
        "waxman-networks": SweepFiles("waxman-networks", tmp_path, 7, "point"),
    }
    page = compose(Request("small", "simulation"), results, files)
    assert re.findall(r"<p>(Tariq|Networks)[^<]*beside ([a-z ]*) of this testbed", page) == [
        ("Tariq", "simulated runs"),
        ("Networks", "computations"),
    ]
    assert "(7 runs)" in page and "(7 points)" in page
