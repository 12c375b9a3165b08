"""Make the data set: drafts, their bytes from Kafka's classes, edits of those, and what three releases read in them."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from kwire.conformance.vectors.case import Case, Outcome
from kwire.conformance.vectors.data_set import CHAPTERS, lines
from kwire.messages import registry
from tools.vectors.batches import batch_drafts, batch_edits, run_edits
from tools.vectors.draft import Draft
from tools.vectors.edits import edits
from tools.vectors.envelopes import data_drafts, data_edits, frame_drafts, frame_edits
from tools.vectors.kafka_classes import Task, run
from tools.vectors.limits import limits
from tools.vectors.messages import BODIES_A_VERSION, Body, bodies
from tools.vectors.primitives import primitives
from tools.vectors.releases import JUDGES, Layout, layouts

__all__ = ["VERSION", "build", "contradictions", "write"]

VERSION = "1.0.0"
"""Of the data set. Major: ids or fields change; minor: cases are added; patch: values or reasons are corrected."""

Run = Callable[[str, Sequence[Task]], list[Task]]


def build() -> tuple[list[Case], list[str]]:
    """Make all cases, by chapter and id. Also returns contradictions between releases, as `contradictions` does."""
    drafts = _bodies()
    fulls = {each.id: each for each in drafts if each.case == "full"}
    of_layout = {
        f"{'headers' if e.spec.kind == 'header' else 'messages'}/{e.name}/{e.version}{e.suffix}/full": e
        for e in layouts()
    }
    for name, full in fulls.items():
        if name in of_layout and _is_newest(of_layout[name]):
            drafts += [_edited(full, edit) for edit in edits(of_layout[name], full.data)]
    drafts += _made([*limits()])
    drafts += _made([*primitives()])
    frames = _made([draft for layout in layouts() for draft in frame_drafts(layout)])
    drafts += frames + [edit for frame in frames for edit in frame_edits(frame)]
    records = _thinned(_made([draft for body in bodies() for draft in data_drafts(body)]))
    drafts += records + [edit for each in records for edit in data_edits(each)]
    batches = _unique(_made([*batch_drafts()]))
    drafts += batches + [edit for each in batches for edit in batch_edits(each)] + [*run_edits(batches)]
    judged, found = [], []
    for case, results in _judged(_unique(drafts)):
        judged.append(case)
        for judge, result in results.items():
            found += [f"Kafka {judge}: {case.id}: {what}" for what in _contradiction(case, judge, result)]
    order = {chapter: number for number, chapter in enumerate(CHAPTERS)}
    return sorted(judged, key=lambda case: (order[case.chapter], case.id)), found


def _is_newest(layout: Layout) -> bool:
    """Return whether edits of a layout are wanted: those of the newest version that is flexible, or that is not."""
    same = [e for e in layouts() if (e.name, e.is_flexible) == (layout.name, layout.is_flexible) and e.maker in JUDGES]
    return bool(same) and same[-1] is layout


def _bodies() -> list[Draft]:
    drafts = [_body(body) for body in bodies()]
    return _thinned(_made(drafts))


def _body(body: Body) -> Draft:
    layout = body.layout
    about = {"type": layout.name, "version": layout.version}
    return Draft(
        chapter="headers" if layout.spec.kind == "header" else "messages",
        **about,
        suffix=layout.suffix,
        case=body.case,
        since=layout.since,
        until=layout.until,
        maker=layout.maker,
        judges=layout.judges,
        task={"op": "encode", **about, "value": body.value, "tags": body.tags},
        judge={"op": "decode", **about},
        encoding="kept" if body.tags else "canonical",
        reason=body.reason,
        source=body.source or f"{layout.name}.json of Kafka {layout.maker}",
        is_spare=body.is_spare,
    )


def _edited(full: Draft, edit: Any) -> Draft:
    return Draft(
        chapter=full.chapter,
        type=full.type,
        version=full.version,
        suffix=full.suffix,
        case=edit.case,
        since=full.since,
        until=full.until,
        maker=full.maker,
        judges=full.judges,
        data=edit.data,
        judge=full.judge,
        encoding="free",
        reason=edit.reason,
        source=edit.source,
        forbidden=edit.forbidden,
    )


def _made(drafts: list[Draft]) -> list[Draft]:
    """Have the makers write the bytes. Drafts that a maker cannot write are dropped and named."""
    groups: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.task is not None:
            groups[draft.maker].append(draft)
    refused: Counter[str] = Counter()
    for maker, results in _run_all({maker: [d.task or {} for d in group] for maker, group in groups.items()}).items():
        for draft, result in zip(groups[maker], results, strict=True):
            if "error" in result:
                refused[
                    f"Kafka {maker} cannot write {draft.chapter}/{draft.type}/{draft.version}: {result['error'][:90]}"
                ] += 1
            else:
                draft.data, draft.result, draft.task = bytes.fromhex(result["bytes"]), result, None
    for what, count in refused.most_common(20):
        print(f"  {count} x {what}")
    return [draft for draft in drafts if draft.task is None]


def _run_all(tasks: dict[str, list[Task]]) -> dict[str, list[Task]]:
    """Run the tasks of each release, two releases at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(tasks, pool.map(run, tasks, tasks.values()), strict=True))


def _unique(drafts: Iterable[Draft]) -> list[Draft]:
    """Keep the first of those with equal ids, or equal bytes of one type, version and layout."""
    seen: set[tuple[str, ...] | str] = set()
    kept = []
    for draft in drafts:
        same = (draft.chapter, draft.type, str(draft.version), draft.suffix, draft.data.hex())
        if same not in seen and draft.id not in seen:
            seen |= {same, draft.id}
            kept.append(draft)
    return kept


def _thinned(drafts: list[Draft]) -> list[Draft]:
    """Keep each body once, and spare ones up to BODIES_A_VERSION."""
    counts: Counter[tuple[str, ...]] = Counter()
    kept = []
    for draft in _unique(drafts):
        layout = (draft.chapter, draft.type, str(draft.version), draft.suffix)
        if not draft.is_spare or counts[layout] < BODIES_A_VERSION:
            counts[layout] += 1
            kept.append(draft)
    return kept


def _judged(drafts: list[Draft]) -> Iterator[tuple[Case, dict[str, Task]]]:
    """Let the releases read all bytes, and give each case its verdict and value. With what each release read."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, draft in enumerate(drafts):
        for judge in draft.judges:
            if judge in JUDGES:  # the others have read back what they wrote
                groups[judge].append(number)
    tasks = {
        judge: [{**drafts[n].judge, "bytes": drafts[n].data.hex()} for n in group] for judge, group in groups.items()
    }
    read: list[dict[str, Task]] = [{} if set(d.judges) & set(JUDGES) else {d.maker: d.result} for d in drafts]
    for judge, results in _run_all(tasks).items():
        for number, result in zip(groups[judge], results, strict=True):
            read[number][judge] = result
    for draft, results_of in zip(drafts, read, strict=True):
        yield _case(draft, results_of), results_of


def _case(draft: Draft, results: dict[str, Task]) -> Case:
    outcomes = {judge: outcome(draft.chapter, result) for judge, result in results.items()}
    accepted = [results[judge] for judge in results if outcomes[judge] == "accept"]
    reason, verdict = draft.reason, "accept"
    if len(set(outcomes.values())) > 1:
        verdict = "either"
        reason += "; " + ", ".join(
            f"Kafka {judge} {'reads' if o == 'accept' else 'refuses'} it" for judge, o in sorted(outcomes.items())
        )
    elif not accepted:
        verdict = "reject"
    elif draft.forbidden:
        verdict = "either"
        reason += f"; {draft.forbidden}"
    value = (
        results[draft.maker].get("value")
        if outcomes.get(draft.maker) == "accept"
        else accepted[-1].get("value")
        if accepted
        else None
    )
    return Case(
        id=draft.id,
        chapter=draft.chapter,
        type=draft.type,
        version=draft.version,
        since=draft.since,
        until=draft.until,
        bytes=draft.data.hex(),
        value=value,
        verdict=verdict,  # type: ignore[arg-type]
        encoding=draft.encoding,
        reason=reason,
        source=draft.source,
        made=draft.maker,
        kafka=dict(sorted(outcomes.items())) if verdict == "either" else None,
    )


def outcome(chapter: str, result: Task) -> Outcome:
    """Return what a release did with bytes. Kafka's types alone leave what follows them to their callers."""
    if "error" in result:
        return "reject"
    return "reject" if chapter == "frames" and result.get("rest") else "accept"


# The judgement of the finished data set


def contradictions(cases: Iterable[Case], releases: Sequence[str] = JUDGES) -> list[str]:
    """Let the classes of some releases judge cases. Returns a line for each that contradicts its verdict or value."""
    kinds = {layout.name: layout for layout in layouts()}
    by_release: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        for release in releases:
            if _can_judge(case, release):
                by_release[release].append(case)
    tasks = {release: [_judge_task(case, kinds) for case in group] for release, group in by_release.items()}
    found = []
    for release, results in _run_all(tasks).items():
        for case, result in zip(by_release[release], results, strict=True):
            found += [f"Kafka {release}: {case.id}: {what}" for what in _contradiction(case, release, result)]
        print(f"  Kafka {release}: {len(results)} cases")
    return found


def _can_judge(case: Case, release: str) -> bool:
    if not case.is_in(release):
        return False
    if case.chapter in ("messages", "headers", "frames", "data"):
        return any(
            release in layout.judges
            and (layout.name, layout.version, layout.since) == (case.type, case.version, case.since)
            for layout in _by_name()[case.type]
        ) and not (
            case.chapter == "data" and (release == "2.8.2") != (case.made == "2.8.2") and _is_metadata(case.type)
        )
    return True


_layouts_by_name: dict[str, list[Layout]] = {}


def _by_name() -> dict[str, list[Layout]]:
    if not _layouts_by_name:
        for layout in layouts():
            _layouts_by_name.setdefault(layout.name, []).append(layout)
    return _layouts_by_name


def _is_metadata(name: str) -> bool:
    return _by_name()[name][0].spec.kind == "metadata"


def _judge_task(case: Case, kinds: dict[str, Layout]) -> Task:
    about = {"type": case.type, "version": case.version, "bytes": case.bytes}
    match case.chapter:
        case "messages" | "headers":
            return {"op": "decode", **about}
        case "frames":
            return {"op": "unframe", **about}
        case "primitives":
            return {"op": "primitive", **about}
        case "data":
            layout = next(e for e in _by_name()[case.type] if (e.version, e.since) == (case.version, case.since))
            kind = layout.spec.kind
            prefix = layout.spec.api_key if kind == "coordinator-key" else case.version
            return {"op": "undata", "kind": kind, "prefix": prefix, **about}
    return {"op": "records", "bytes": case.bytes}


def _contradiction(case: Case, release: str, result: Task) -> Iterator[str]:
    seen = outcome(case.chapter, result)
    expected = case.verdict if case.verdict != "either" else (case.kafka or {}).get(release, seen)
    if seen != expected:
        yield f"verdict {case.verdict}, and Kafka says {seen}: {result.get('error', '')[:100]}"
    if seen != "accept" or case.verdict == "either":
        return
    value = result.get("value")
    if case.encoding != "free" and result.get("bytes", case.bytes) != case.bytes:
        yield f"written again as {result['bytes'][:100]}"
    if value is not None and value != case.value and (release == case.made or _keys(value) == _keys(case.value)):
        yield f"value {json.dumps(value)[:100]}, expected {json.dumps(case.value)[:100]}"


def _keys(value: Any) -> Any:
    """Return the names of fields in a value: those of older releases differ."""
    if isinstance(value, dict):
        return {key: _keys(each) for key, each in value.items()}
    return [_keys(each) for each in value] if isinstance(value, list) else None


# Files


def write(cases: list[Case], folder: Path) -> dict[str, Any]:
    """Write the chapters and the manifest. Returns the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder = msgspec.json.Encoder()
    chapters: dict[str, Any] = {}
    for chapter in CHAPTERS:
        of_chapter = [case for case in cases if case.chapter == chapter]
        text = b"".join(encoder.encode(case) + b"\n" for case in of_chapter)
        (folder / f"{chapter}.jsonl.xz").write_bytes(lzma.compress(text, preset=6))
        verdicts = Counter(case.verdict for case in of_chapter)
        chapters[chapter] = {
            "cases": len(of_chapter),
            **dict(sorted(verdicts.items())),
            "sha256": hashlib.sha256(text).hexdigest(),
        }
    manifest = {
        "name": "kafka-wire-vectors",
        "version": VERSION,
        "licence": "Apache-2.0",
        "judges": list(JUDGES),
        "makers": sorted({case.made for case in cases}),
        "releases": list(reversed(registry.RELEASES)),
        "cases": len(cases),
        "chapters": chapters,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def stored() -> Iterator[bytes]:
    """Return the lines of the data set in the package."""
    for chapter in CHAPTERS:
        yield from lines(chapter)
