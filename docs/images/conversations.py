"""Who sends what to whom, a sequence diagram for each conversation: python docs/images/conversations.py

A diagram is a row of parties and a list of messages: what the module of the conversation says at its top. The
pictures are SVG, so that they can be read at any size and searched for words.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).parent / "conversations"
LANE, LEFT, TOP, STEP = 270, 110, 64, 46
INK, SOFT, LINE, PAPER = "#1f2933", "#52606d", "#2f6690", "#ffffff"


@dataclass(frozen=True)
class Message:
    """An arrow from one party to another; from a party to itself it is what that party computes."""

    sender: int
    receiver: int
    words: str


@dataclass(frozen=True)
class Diagram:
    """One conversation: its parties, and what passes between them in a round."""

    title: str
    parties: tuple[str, ...]
    messages: tuple[Message, ...]

    def svg(self) -> str:
        """Return the diagram as SVG."""
        width = 2 * LEFT + LANE * (len(self.parties) - 1)
        height = TOP + 40 + STEP * len(self.messages) + 20
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="13" role="img" '
            f'aria-label="{escape(self.title)}">',
            f'<rect width="{width}" height="{height}" fill="{PAPER}" rx="8"/>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>',
            f'<text x="14" y="20" fill="{SOFT}">{escape(self.title)}</text>',
        ]
        for k, name in enumerate(self.parties):
            x = LEFT + LANE * k
            parts += [
                f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{height - 12}" stroke="#cbd2d9" '
                'stroke-dasharray="3 4"/>',
                f'<rect x="{x - 86}" y="{TOP - 30}" width="172" height="28" rx="5" fill="#eaf1f7" '
                f'stroke="{LINE}"/>',
                f'<text x="{x}" y="{TOP - 11}" fill="{INK}" text-anchor="middle">{escape(name)}</text>',
            ]
        for k, message in enumerate(self.messages):
            parts += _arrow(message, TOP + 40 + STEP * k)
        return "\n".join([*parts, "</svg>"]) + "\n"


def _arrow(message: Message, y: int) -> list[str]:
    """Return one message at a height, its words above it."""
    start, end = (LEFT + LANE * who for who in (message.sender, message.receiver))
    words = escape(message.words)
    if start == end:
        path = f"M{start},{y - 8} h26 v16 h-20"
        return [
            f'<path d="{path}" fill="none" stroke="{LINE}" marker-end="url(#tip)"/>',
            f'<text x="{start + 34}" y="{y + 5}" fill="{INK}">{words}</text>',
        ]
    gap = 4 if end > start else -4
    return [
        f'<line x1="{start + gap}" y1="{y}" x2="{end - gap}" y2="{y}" stroke="{LINE}" '
        'marker-end="url(#tip)"/>',
        f'<text x="{(start + end) / 2:g}" y="{y - 6}" fill="{INK}" text-anchor="middle">{words}</text>',
    ]


def _diagram(title: str, parties: str, *messages: tuple[int, int, str]) -> Diagram:
    return Diagram(title, tuple(parties.split(" | ")), tuple(Message(*message) for message in messages))


DIAGRAMS = {
    "backward": _diagram(
        "VFB2, labels in clear: one round",
        "passive party | label holder (dominator) | other label holder",
        (0, 1, "X_l w_l of the batch, masked"),
        (2, 1, "X_l w_l of the batch, masked"),
        (1, 1, "z = sum, theta = L'(z, y)"),
        (1, 0, "theta"),
        (1, 2, "theta"),
        (0, 0, "w_l -= eta v_l"),
        (2, 2, "w_l -= eta v_l"),
    ),
    "blind": _diagram(
        "Linear models, labels blind: one round",
        "owner of columns | label holder | dealer",
        (2, 0, "random words, derived from keys"),
        (2, 1, "random words, derived from keys"),
        (0, 1, "its share of X_l w_l, veiled"),
        (1, 1, "z = sum, theta = L'(z, y)"),
        (1, 0, "theta, veiled: uniform words"),
        (0, 0, "its share of X_l' theta, hence of w_l"),
        (1, 1, "the other share of every w_l"),
    ),
    "encrypted": _diagram(
        "Two parties alone, labels blind: one gradient each",
        "A (label holder) | P (columns)",
        (0, 1, "a public key, f_r(u) encrypted"),
        (1, 1, "sum f_r g_r(v) + k"),
        (1, 0, "that, under A's key, flooded"),
        (0, 0, "its part of theta"),
        (0, 1, "a key, its part of theta encrypted"),
        (1, 0, "a key, its part of theta encrypted"),
        (0, 1, "P's gradient in part, with noise"),
        (1, 0, "A's gradient in part, with noise"),
        (0, 1, "inner products, 5 bits each"),
        (1, 0, "inner products, 5 bits each"),
    ),
    "pull": _diagram(
        "AsySQN and AFVP: every label holder at its own pace",
        "party | label holder | other label holder",
        (1, 0, "asks for its next batch"),
        (1, 2, "asks for its next batch"),
        (0, 1, "X_l w_l of that batch, masked"),
        (2, 1, "X_l w_l of that batch, masked"),
        (1, 1, "theta; w_l -= gamma H_l v_l"),
        (2, 1, "asks for a batch of its own"),
        (1, 2, "X_l w_l of that batch, masked"),
    ),
    "full": _diagram(
        "L-BFGS on all rows: one step, labels in clear",
        "party | label holder | other party",
        (0, 1, "inner products of its pairs, masked"),
        (2, 1, "inner products of its pairs, masked"),
        (1, 0, "their sums: d_l = -H g is known"),
        (1, 2, "their sums: d_l = -H g is known"),
        (0, 1, "X_l d_l of all rows, masked"),
        (2, 1, "X_l d_l of all rows, masked"),
        (1, 1, "the best t along z + t X d"),
        (1, 0, "t, theta"),
        (1, 2, "t, theta"),
    ),
    "cascade": _diagram(
        "AsyREVEL and VFL-CZOFO: one question and its answer",
        "client | server (label holder) | other client",
        (0, 1, "outputs c (AsyREVEL: also moved ones)"),
        (1, 1, "puts c into its table of latest outputs"),
        (1, 1, "losses of c and of moved outputs"),
        (1, 0, "values, deltas, or a gradient"),
        (0, 0, "steps its own model"),
        (2, 1, "outputs of other rows, meanwhile"),
        (1, 2, "its answer"),
    ),
    "exchange": _diagram(
        "C-VFL: one batch",
        "client | server (label holder) | other client",
        (1, 0, "all labels (once a run)"),
        (0, 1, "outputs, 8 bits"),
        (2, 1, "outputs, 8 bits"),
        (1, 0, "all outputs and the server's model"),
        (1, 2, "all outputs and the server's model"),
        (0, 0, "several local steps"),
        (2, 2, "several local steps"),
    ),
    "kernel": _diagram(
        "FDSKL: one round",
        "party | dominator of the round | other owner",
        (0, 1, "X_l omega_l of all rows, masked"),
        (2, 1, "X_l omega_l of all rows, masked"),
        (2, 1, "f_l of the batch, masked"),
        (1, 1, "theta; alpha of the new features"),
        (1, 0, "round over"),
        (1, 2, "round over"),
        (2, 2, "f_l decays"),
    ),
    "gram": _diagram(
        "PP-SVMV: the whole kernel matrix, once",
        "party | active party | other party",
        (0, 1, "X_l X_l', masked"),
        (2, 1, "X_l X_l', masked"),
        (1, 1, "the kernel matrix; a support vector machine"),
    ),
    "boost": _diagram(
        "SecureBoost: one level of one tree",
        "owner of columns | label holder | dealer",
        (2, 0, "random words (where blind)"),
        (1, 0, "gradients, veiled where blind"),
        (0, 1, "sums over bins, veiled where blind"),
        (1, 1, "the best split of every node"),
        (1, 0, "which of its bins splits which node"),
        (0, 1, "which rows go left"),
    ),
}


def main() -> None:
    """Write every diagram."""
    HERE.mkdir(exist_ok=True)
    for name, diagram in DIAGRAMS.items():
        (HERE / f"{name}.svg").write_text(diagram.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
