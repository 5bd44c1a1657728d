"""Training in which nobody but the label holder learns theta, gradients or labels (docs/blind.md)."""
