"""A worker that learns and attacks nothing: it writes down what it was asked for and leaves the
files of a cell that is done.

The cell's settings say how it behaves: `seconds` of work, `die` (kill itself while attacking, so
many times), `refuse` (a sentence).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path


def main() -> None:
    jobs: list[dict] = []
    heard = threading.Condition()

    def listen() -> None:
        for line in sys.stdin:
            with heard:
                jobs.append(json.loads(line))
                heard.notify()
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        with heard:
            heard.wait_for(lambda: jobs)
            job = jobs.pop(0)
        sys.stdout.write(json.dumps(work(job)) + "\n")
        sys.stdout.flush()


def work(job: dict) -> dict:
    cell, folder = job["cell"], Path(job["folder"])
    settings = cell["settings"]
    with (folder.parent.parent / "asked.txt").open("a") as file:
        words = (
            job["do"],
            cell["method"],
            cell["seed"],
            os.getpid(),
            "raw" if job["raw"] else "own",
        )
        file.write(" ".join(map(str, words)) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    time.sleep(settings.get("seconds", 0))
    if "refuse" in settings:
        return {"error": settings["refuse"]}
    if job["do"] == "learn":
        (folder / "release").mkdir(exist_ok=True)
        (folder / "release" / "card.json").write_text("{}")
        (folder / "learned.json").write_text('{"seconds": 1}')
        return {}
    died = folder / "died.txt"
    before = len(died.read_text()) if died.exists() else 0
    if before < settings.get("die", 0):
        died.write_text("x" * (before + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / "audit").mkdir(exist_ok=True)
    (folder / "audit" / "audit.json").write_text("{}")
    (folder / "done.json").write_text('{"seconds": 1}')
    return {}


if __name__ == "__main__":
    main()
