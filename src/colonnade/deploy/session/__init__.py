"""What a program needs to play this party's part in a run: networks, common rows, prepared columns."""
