"""Eight parties hold 30 columns about the same patients; three of them also hold the diagnosis.

Run it: python examples/breast_cancer.py [report.html]
"""

from __future__ import annotations

import sys

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from colonnade import VerticalClassifier


def main(report: str | None = None) -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    clf = VerticalClassifier(parties=8, active=3, l2=1e-3).fit(X_train, y_train)

    pooled = make_pipeline(StandardScaler(), LogisticRegression(C=1 / (1e-3 * len(y_train)), max_iter=1000))
    pooled.fit(X_train, y_train)
    cost = clf.result_.cost
    print(f"accuracy, columns apart:    {clf.score(X_test, y_test):.4f}")
    print(f"accuracy, columns together: {pooled.score(X_test, y_test):.4f}")
    print(f"{cost.rounds} rounds, {cost.messages} messages, {cost.bytes_sent / 1e6:.2f} MB")
    for party, said in clf.result_.data.done.items():
        print(f"{party}: {'; '.join(said)}")
    for note in clf.result_.privacy.notes:
        print(f"note: {note}")
    if report:
        print(f"written: {clf.report(report)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
