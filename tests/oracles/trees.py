"""Gradient-boosted trees on pooled columns, as plainly as can be: loops over rows, no histograms."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade.job import Trees

Row = int
Node = dict[str, Any]


@dataclass
class NaiveTrees:
    """Boosting with squared, logistic or softmax loss; `tables` are every party's columns."""

    tables: list[np.ndarray]
    y: np.ndarray
    rules: Trees
    rounds: int
    seed: int
    loss: str = "logistic"
    classes: int = 0
    weight: np.ndarray | None = None
    trees: list[Node] = field(default_factory=list)
    base: list[float] = field(default_factory=list)

    def fit(self) -> list[Node]:
        n, rules = len(self.y), self.rules
        self.columns = [
            (party, j, [float(x) for x in table[:, j]])
            for party, table in enumerate(self.tables)
            for j in range(table.shape[1])
        ]
        self.cuts = [self._cuts(values) for _, _, values in self.columns]
        held_back = [False] * n
        if rules.early_stopping_rounds:
            held_back = (np.random.default_rng([self.seed, 0]).random(n) < rules.validation_fraction).tolist()
        self.base = self._base([i for i in range(n) if not held_back[i]])
        z = [list(self.base) for _ in range(n)]
        best, best_round = math.inf, 0
        for number in range(self.rounds):
            rng = np.random.default_rng([self.seed, 3, number])
            derivatives = [self._derivatives(i, z[i]) for i in range(n)]
            for k in range(len(self.base)):
                t = len(self.trees)
                rows = [i for i in range(n) if not held_back[i]]
                if rules.subsample < 1:
                    drawn = np.random.default_rng([self.seed, 1, t]).random(n)
                    rows = [i for i in rows if drawn[i] < rules.subsample]
                g, h = self._rounded([d[k] for d in derivatives], rng)
                tree = self._grow(t, rows, g, h)
                for i in range(n):
                    z[i][k] += self._value(tree, i)
                self.trees.append(tree)
            if rules.early_stopping_rounds:
                loss = np.average(
                    [self._loss(i, z[i]) for i in range(n) if held_back[i]],
                    weights=None if self.weight is None else self.weight[np.array(held_back)],
                )
                if loss < best:
                    best, best_round = float(loss), number + 1
                if number + 1 - best_round >= rules.early_stopping_rounds:
                    break
        if rules.early_stopping_rounds:
            self.trees = self.trees[: best_round * len(self.base)]
        return self.trees

    def _cuts(self, values: list[float]) -> list[float]:
        distinct = sorted({x for x in values if not math.isnan(x)})
        most: int = self.rules.max_bin
        cuts: list[float] = []
        if len(distinct) <= most:
            return [(a + b) / 2 for a, b in itertools.pairwise(distinct)]
        known = [x for x in values if not math.isnan(x)]
        for k in range(1, most):
            seen = 0
            for a, b in itertools.pairwise(distinct):
                seen += sum(x == a for x in known)
                if seen >= k * (len(known) / most):
                    if not cuts or cuts[-1] != (a + b) / 2:
                        cuts.append((a + b) / 2)
                    break
        return cuts

    def _weight(self, i: Row) -> float:
        return 1.0 if self.weight is None else float(self.weight[i])

    def _base(self, rows: list[Row]) -> list[float]:
        total = sum(self._weight(i) for i in rows)
        if self.loss == "softmax":
            return [
                math.log(sum(self._weight(i) for i in rows if self.y[i] == k) / total)
                for k in range(self.classes)
            ]
        mean = sum(self._weight(i) * float(self.y[i]) for i in rows) / total
        return [mean] if self.loss == "squared" else [math.log((1 + mean) / (1 - mean))]

    def _derivatives(self, i: Row, z: list[float]) -> list[tuple[float, float]]:
        w, y = self._weight(i), float(self.y[i])
        if self.loss == "squared":
            return [(w * (z[0] - y), w)]
        if self.loss == "logistic":
            p = 1 / (1 + math.exp(-z[0]))
            return [(w * (p - (y > 0)), w * p * (1 - p))]
        top = sum(math.exp(s) for s in z)
        return [
            (w * (math.exp(s) / top - (y == k)), w * math.exp(s) / top * (1 - math.exp(s) / top))
            for k, s in enumerate(z)
        ]

    def _loss(self, i: Row, z: list[float]) -> float:
        y = float(self.y[i])
        if self.loss == "squared":
            return 0.5 * (z[0] - y) ** 2
        if self.loss == "logistic":
            return math.log(1 + math.exp(-y * z[0]))
        return math.log(sum(math.exp(s) for s in z)) - z[int(y)]

    def _rounded(
        self, pairs: list[tuple[float, float]], rng: np.random.Generator
    ) -> tuple[list[int], list[int]]:
        """g and h as whole numbers times a unit, rounded by chance."""
        n = len(pairs)
        most_g, most_h = min(2**15 - 1, (2**31 - 1) // n), min(2**16 - 1, (2**32 - 1) // n)
        self.steepest = max(abs(g) for g, _ in pairs)
        self.unit_g = self.steepest / most_g
        self.unit_h = max(h for _, h in pairs) / most_h
        up_g, up_h = rng.random(n), rng.random(n)
        g = [math.floor(pair[0] / self.unit_g + u) for pair, u in zip(pairs, up_g, strict=True)]
        h = [math.floor(pair[1] / self.unit_h + u) for pair, u in zip(pairs, up_h, strict=True)]
        return g, [min(each, most_h) for each in h]

    def _grow(self, t: int, rows: list[Row], g: list[int], h: list[int]) -> Node:
        usable = [True] * len(self.columns)
        if self.rules.colsample_bytree < 1:
            for party, table in enumerate(self.tables):
                width = table.shape[1]
                count = max(1, round(self.rules.colsample_bytree * width))
                chosen = np.random.default_rng([self.seed, 2, t, party]).choice(width, count, replace=False)
                for place, (owner, j, _) in enumerate(self.columns):
                    if owner == party:
                        usable[place] = j in chosen
        root: Node = {"rows": rows, "bounds": (-math.inf, math.inf)}
        level, leaves, depth = [root], 1, 0
        while level:
            looked = [(node, self._best(node, g, h, usable)) for node in level]
            found = [(node, best) for node, best in looked if best is not None]
            if self.rules.max_leaves:
                order = sorted(found, key=lambda pair: -pair[1]["gain"])[: self.rules.max_leaves - leaves]
                found = [pair for pair in found if any(pair is other for other in order)]
            leaves, depth, following = leaves + len(found), depth + 1, []
            for node, best in found:
                node.update(best)
                following += [node["left"], node["right"]]
            full = self.rules.max_leaves and leaves >= self.rules.max_leaves
            level = [] if depth >= self.rules.max_depth or full else following
        self._label(root, g, h)
        return root

    def _best(self, node: Node, g: list[int], h: list[int], usable: list[bool]) -> Node | None:
        best: Node | None = None
        rows, bounds = node["rows"], node["bounds"]
        total_g, total_h = sum(g[i] for i in rows), sum(h[i] for i in rows)
        for place, (party, j, values) in enumerate(self.columns):
            if not usable[place]:
                continue
            with_gaps = any(math.isnan(x) for x in values)
            for cut in [*self.cuts[place], *([math.inf] if with_gaps else [])]:
                options = []
                for gaps_left in (False, True) if with_gaps and cut < math.inf else (False,):
                    left = [i for i in rows if (gaps_left if math.isnan(values[i]) else values[i] <= cut)]
                    sums = sum(g[i] for i in left), sum(h[i] for i in left), total_g, total_h
                    gain = self._gain(*sums)
                    if self.rules.monotone_constraints and gain > -math.inf:
                        gain = self._bounded_gain(*sums, bounds, self._rises(place))
                    options.append((gain, gaps_left, left))
                gain, gaps_left, left = max(options, key=lambda option: option[0])
                if gain <= max(self.rules.gamma, 1e-6 * min(1.0, self.steepest**2)):
                    continue
                if best is None or gain > best["gain"]:
                    right = [i for i in rows if i not in set(left)]
                    best = {
                        "gain": gain,
                        "party": party,
                        "column": j,
                        "threshold": cut,
                        "gaps_left": gaps_left,
                    }
                    best["matters"] = len({option[0] for option in options}) > 1
                    low, high = self._parted(left, right, g, h, bounds, self._rises(place))
                    best["left"] = {"rows": left, "bounds": low}
                    best["right"] = {"rows": right, "bounds": high}
        return best

    def _gain(self, g: int, h: int, total_g: int, total_h: int) -> float:
        least, lam = self.rules.least_weight, self.rules.reg_lambda
        left_g, left_h = g * self.unit_g, h * self.unit_h
        all_g, all_h = total_g * self.unit_g, total_h * self.unit_h
        right_g, right_h = all_g - left_g, all_h - left_h
        if left_h < least or right_h < least or left_h <= 0 or right_h <= 0:
            return -math.inf
        return (
            left_g * left_g / (left_h + lam)
            + right_g * right_g / (right_h + lam)
            - all_g * all_g / (all_h + lam)
        )

    def _rises(self, place: int) -> int:
        """Whether scores may only rise, 1, or fall, -1, with a column; columns are named c0, c1 and so on."""
        return self.rules.monotone_constraints.get(f"c{place}", 0)

    def _score(self, g: float, h: float, bounds: tuple[float, float]) -> float:
        return min(max(-g / (h + self.rules.reg_lambda), bounds[0]), bounds[1])

    def _bounded_gain(
        self, g: int, h: int, total_g: int, total_h: int, bounds: tuple[float, float], rises: int
    ) -> float:
        parts = [(g, h), (total_g - g, total_h - h), (total_g, total_h)]
        known = [(a * self.unit_g, b * self.unit_h) for a, b in parts]
        scores = [self._score(a, b, bounds) for a, b in known]
        if rises * (scores[1] - scores[0]) < 0:
            return -math.inf
        lam = self.rules.reg_lambda
        worth = [-2 * a * w - (b + lam) * w * w for (a, b), w in zip(known, scores, strict=True)]
        return worth[0] + worth[1] - worth[2]

    def _parted(
        self,
        left: list[Row],
        right: list[Row],
        g: list[int],
        h: list[int],
        bounds: tuple[float, float],
        rises: int,
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """The bounds of two children."""
        sides = [
            self._score(sum(g[i] for i in rows) * self.unit_g, sum(h[i] for i in rows) * self.unit_h, bounds)
            for rows in (left, right)
        ]
        middle, (low, high) = sum(sides) / 2, bounds
        if rises > 0:
            return (low, middle), (middle, high)
        return ((middle, high), (low, middle)) if rises < 0 else (bounds, bounds)

    def _label(self, node: Node, g: list[int], h: list[int]) -> None:
        rows, bounds = node.pop("rows"), node.pop("bounds")
        if "party" in node:
            self._label(node["left"], g, h)
            self._label(node["right"], g, h)
            return
        score = self._score(
            sum(g[i] for i in rows) * self.unit_g, sum(h[i] for i in rows) * self.unit_h, bounds
        )
        node["value"] = self.rules.learning_rate * score

    def _value(self, node: Node, i: Row) -> float:
        while "party" in node:
            x = self.tables[node["party"]][i, node["column"]]
            left = node["gaps_left"] if math.isnan(x) else x <= node["threshold"]
            node = node["left"] if left else node["right"]
        return float(node["value"])
