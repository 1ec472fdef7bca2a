"""Every peer computes its own links of each shortest-path tree; together they must form trees."""

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.routing.shortest_paths.trees import links_in_trees

PEERS = range(1, 9)
_edge = st.tuples(st.sampled_from(PEERS), st.sampled_from(PEERS)).filter(lambda e: e[0] < e[1])
_edges = st.dictionaries(_edge, st.integers(1, 4), max_size=20)  # short, so that there are ties


@settings(max_examples=150, deadline=None)
@given(_edges)
def test_links_computed_by_single_peers_form_shortest_path_trees(edges: dict) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(PEERS)
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in edges.items())
    found = {me: links_in_trees(me, PEERS, edges) for me in PEERS}
    for root in PEERS:
        tree = nx.DiGraph()
        tree.add_nodes_from(PEERS)
        tree.add_edges_from((me, peer) for me in PEERS for peer in found[me][root])
        assert all(tree.has_edge(b, a) for a, b in tree.edges)
        for piece in map(sorted, nx.connected_components(graph)):
            # Peers that the root cannot reach have the tree of their lowest address.
            start = root if root in piece else piece[0]
            part = graph.edge_subgraph(tree.edges(piece)).copy()
            part.add_nodes_from(piece)
            assert nx.is_tree(part)
            right_us = nx.single_source_dijkstra_path_length(graph, start)
            assert nx.single_source_dijkstra_path_length(part, start) == right_us
