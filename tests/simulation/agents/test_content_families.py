"""Content on families of trees: each tree is used by some of the publishers at the same time."""

from tests.fixtures.whole_runs import WholeRun


def in_trouble(core_paths: str) -> WholeRun:
    """A new tree or family is built while events flow, packets are lost and a core crashes."""
    run = WholeRun(
        16, 120, seed=3, loss_percent=1.0, core_paths=core_paths, cores=4, recalculate_s=14.0
    ).run(22)
    first_core = int(run.recorded("cores_selected")[0][3]["cores"].split()[0])
    (host,) = (spec.host for spec in run.specs if spec.address == first_core)
    run.kill(22.5, host)
    return run.run()


def test_an_event_stays_on_its_own_version_of_a_family() -> None:
    run = WholeRun(30, 120, seed=2, core_paths="apsp", cores=8).run()
    delivery = run.delivery()
    assert delivery.steady.expected > 120
    assert delivery.steady.is_exact and delivery.unasked == ()
    published_on = {row[3]["version"] for row in run.recorded("event_published")}
    assert len(published_on) > 2
    assert run.sent["sent_Offer"] == 0


def test_the_change_to_a_new_family_needs_as_few_offers_as_to_a_new_tree() -> None:
    runs = {core_paths: in_trouble(core_paths) for core_paths in ("tree", "apsp")}
    for run in runs.values():
        delivery = run.delivery()
        assert delivery.steady.expected > 120
        assert delivery.steady.is_exact and delivery.unasked == ()
        assert delivery.unsteady.duplicates == {}
        assert len(run.recorded("cores_selected")) > 1
    offers = {core_paths: run.sent["sent_Offer"] for core_paths, run in runs.items()}
    assert 0 < offers["apsp"] < 2 * offers["tree"], offers
