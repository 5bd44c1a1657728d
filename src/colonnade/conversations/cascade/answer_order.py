"""In which order the server answers: `Inbox` takes uploads in, `AnswerOrder` decides which are answered next.

A *wave* is what is answered together: one upload (asynchronous), or one of every client (synchronous). No
answer is given while it would leave some client unheard for more than `silence` answers, which bounds how old
the server's table can be (`lateness`).

What each side learns is in `cascade`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from colonnade.messages import Reply, Topic, Upload, tag_of
from colonnade.net.expect import out_of_turn
from colonnade.net.network import Network
from colonnade.state import Declared

Asked = tuple[str, Upload]


class Inbox:
    """Takes the uploads of all clients, the server's own included, and sends their answers."""

    STATE = Declared(kept=("asked", "answered"), remade=("_uploads", "_own"))

    def __init__(self, net: Network, ahead: int) -> None:
        self._net = net
        self._ahead = ahead  # the most questions of a client that are under way
        self.asked = dict.fromkeys(net.parties, 0)  # questions of every client, and how many had an answer
        self.answered = dict.fromkeys(net.parties, 0)
        self._uploads: asyncio.Queue[Asked] = asyncio.Queue()
        self._own: dict[int, asyncio.Future[Reply]] = {}

    async def upload(self, message: Upload) -> None:
        """Take a question of the server's own client."""
        self._uploads.put_nowait((self._net.me, message))

    async def reply(self, tag: int) -> Reply:
        """Return the answer to a question of the server's own client."""
        reply = await self._awaited(tag)
        del self._own[tag]
        return reply

    def _awaited(self, tag: int) -> asyncio.Future[Reply]:
        """Return the answer to come to a question of the server's own client."""
        if tag not in self._own:
            self._own[tag] = asyncio.get_running_loop().create_future()
        return self._own[tag]

    async def answer(self, client: str, reply: Reply) -> None:
        """Send an answer to the client that asked."""
        if client == self._net.me:
            self._awaited(reply.tag).set_result(reply)
        else:
            self.answered[client] += 1
            await self._net.send(client, reply)

    async def next(self) -> Asked:
        """Return the next upload, in the order of arrival."""
        return await self._uploads.get()

    async def collect(self) -> None:
        """Take uploads from the network until cancelled."""
        while True:
            for client, upload in await self._net.drain(Upload):
                self._check(client, upload)
                self._uploads.put_nowait((client, upload))

    def _check(self, client: str, upload: Upload) -> None:
        """Raise unless an upload is its client's next one, and no more are under way than may be."""
        number = self.asked[client]
        if upload.tag != tag_of(Topic.TRAIN, number) or number >= self.answered[client] + self._ahead:
            raise out_of_turn(
                client, upload, f"its question {number} is due, at most {self._ahead} at a time"
            )
        self.asked[client] = number + 1


@dataclass
class Turns:
    """How many answers each client got (`turns`), when it was last heard, and which uploads wait."""

    turns: dict[str, int]
    heard: dict[str, int]
    answered: int = 0
    waiting: list[Asked] = field(default_factory=list)


@dataclass
class AnswerOrder:
    """Yields one wave after another. `me` is the server's name, `together` how many uploads make a wave."""

    STATE = Declared(kept=("state",))

    me: str
    inbox: Inbox
    clients: tuple[str, ...]
    together: int
    silence: int  # answers during which a client may be unheard
    total: int  # answers of the whole run
    state: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.state = Turns(dict.fromkeys(self.clients, 0), dict.fromkeys(self.clients, 0))

    async def __aiter__(self) -> AsyncIterator[list[Asked]]:
        state = self.state
        while True:
            while self.timely():
                ready = [asked for asked in state.waiting if self.in_turn(asked[0])][: self.together]
                if len(ready) < self.together:
                    break
                state.waiting = [asked for asked in state.waiting if asked not in ready]
                yield ready
            await self.take()

    async def take(self) -> None:
        """Take in the next upload."""
        state = self.state
        state.waiting.append(await self.inbox.next())
        state.heard[state.waiting[-1][0]] = state.answered

    async def still(self, each: int) -> None:
        """Wait until all that clients may ask before they are answered is here, `each` a client: no message
        is under way then, and nobody's parameters change."""
        while len(self.state.waiting) < each * len(self.clients):
            await self.take()

    def put_back(self, wave: list[Asked]) -> None:
        """Let a wave wait again that could not be answered."""
        self.state.waiting = wave + self.state.waiting

    def in_turn(self, client: str) -> bool:
        """Return whether a client may be answered now; the server's own may not be ahead of the quickest
        other.

        No network slows it down, so it would run away.
        """
        turns = self.state.turns
        others = [count for name, count in turns.items() if name != self.me]
        return client != self.me or turns[client] <= max(others, default=self.total)

    def timely(self) -> bool:
        """Return whether no client was silent for too long; those whose uploads wait here are not silent."""
        state, asking = self.state, {client for client, _ in self.state.waiting}
        silent = [state.answered - at for client, at in state.heard.items() if client not in asking]
        return max(silent, default=0) < self.silence

    async def release(self, each: int, empty: Reply) -> None:
        """End every client's training: answer its last questions, `each` a client, with nothing."""
        under_way = dict.fromkeys(self.clients, each)
        while any(under_way.values()):
            client, upload = self.state.waiting.pop(0) if self.state.waiting else await self.inbox.next()
            under_way[client] -= 1
            await self.inbox.answer(client, Reply(upload.tag, empty.answered, empty.values))
