"""What people read of a run: a summary, a figure, a page."""
