"""The runs of one daemon: proposed by it or by a peer, under way, resumed, ended."""
