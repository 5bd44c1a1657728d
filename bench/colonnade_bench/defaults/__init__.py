"""Files of strangers, with no setting but file, label and id: Colonnade beside a scikit-learn pipeline."""
