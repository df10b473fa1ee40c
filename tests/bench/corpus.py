"""The speech corpus and how its words are counted."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TITLES = {"mr": "mister", "mrs": "missus", "dr": "doctor"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    id: str
    path: Path
    text: str
    condition: str
    seconds: float


def recordings(*folders: str) -> list[Recording]:
    """The English recordings below these folders of the corpus."""
    corpus = Path(os.environ.get("SURTITLE_CORPUS", ROOT.parent / "shared" / "speech"))
    found = []
    for line in (corpus / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["language"].startswith("en") and row["file"].split("/")[0] in folders:
            found.append(
                Recording(
                    id=row["id"],
                    path=corpus / row["file"],
                    text=row["text"],
                    condition=row["condition"],
                    seconds=row["seconds"],
                )
            )
    return found


def words(text: str) -> list[str]:
    """Words as the corpus wants them scored."""
    text = text.lower().replace("-", " ").replace("\u2019", "'")
    text = re.sub(r"[^\w' ]+", " ", text)
    text = re.sub(r"(?<!\w)'|'(?!\w)", " ", text)
    return [_TITLES.get(word, word) for word in text.split()]


def errors(reference: list[str], heard: list[str]) -> int:
    """Words put in, left out or taken for others."""
    row = list(range(len(heard) + 1))
    for i, a in enumerate(reference, 1):
        above, row = row, [i]
        for j, b in enumerate(heard, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b)))
    return row[-1]
