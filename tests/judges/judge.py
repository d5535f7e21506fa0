"""Runs the outside judges over one WARC and, if given, a WACZ and an index, and says what they object to.

What single judges are known to get wrong, and how it is met here:
* fastwarc with -p refuses good revisit and resource records: run without.
* warcat hashes payloads after undoing Content-Encoding: its payload mismatch does not count on records with that header, nor that
  an origin's body cannot be decoded; the payload digest of such records is checked by warcio. It may hang on broken lengths: it runs against the clock.
* warcat wants every referred-to record in the same file: a revisit may name one in another.
* wacz validate does not look at index, page list, offsets and compression: those are checked here.
* none of them misses ids, dates, digests, or minds a space in a URI: those are checked here.
"""

import argparse
import gzip
import hashlib
import io
import json
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from pathlib import Path

from cdxj_indexer.main import CDXJIndexer
from warcio.archiveiterator import ArchiveIterator

PATIENCE = 300
objections = []


def object_to(judge, what):
    objections.append(judge)
    print(f"FAIL {judge}: {str(what)[:300]}")


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def run(judge, *command):
    """Output of a command, or None when it was refused; reports a refusal."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        object_to(judge, f"no answer in {PATIENCE} s")
        return None
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    if done.returncode != 0:
        lines = said.splitlines() or [f"exit {done.returncode}"]
        object_to(judge, next((l for l in lines if "fail" in l.lower() or "error" in l.lower()), lines[-1]))
        return None
    return said


class Warc:
    """The records of a file: header fields as written (warcio mends some), type and whether the body is content-coded."""

    def __init__(self, path):
        self.path = path
        self.name = Path(path).name
        self.records = []
        data = Path(path).read_bytes()
        with open(path, "rb") as stream:
            records = ArchiveIterator(stream)
            for record in records:
                coded = bool(record.http_headers and record.http_headers.get_header("Content-Encoding"))
                start, length = records.get_record_offset(), records.get_record_length()
                self.records.append((fields_of(data[start : start + length]), record.rec_type, coded))


def fields_of(member):
    """The header fields of a stored record by lower-case name; the first of each counts."""
    header = zlib.decompressobj(wbits=31).decompress(member).split(b"\r\n\r\n", 1)[0]
    fields = {}
    for line in header.decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        fields.setdefault(name.lower(), value.strip(" \t"))
    return fields


def judge_form(warc):
    """What no judge looks at."""
    ids = Counter(fields.get("warc-record-id") for fields, *_ in warc.records)
    for record_id, count in ids.items():
        if count > 1 or not record_id:
            object_to("form", f"record id {record_id} {count} times")
    for fields, kind, _ in warc.records:
        where = f"{kind} {fields.get('warc-record-id')}"
        wanted = ["warc-date", "warc-block-digest", "content-length"]
        if kind != "warcinfo":
            wanted += ["warc-target-uri", "warc-payload-digest"]
        if kind == "revisit":
            wanted += ["warc-profile", "warc-refers-to-target-uri", "warc-refers-to-date"]
        for name in wanted:
            if not fields.get(name):
                object_to("form", f"{where} has no {name}")
        for name in ("warc-block-digest", "warc-payload-digest"):
            if name in fields and not is_sha256(fields[name]):
                object_to("form", f"{where}: {name} is {fields[name]}")
        if any(c.isspace() for c in fields.get("warc-target-uri", "")):
            object_to("form", f"{where} has a space in its URI")


def is_sha256(label):
    digest = label.removeprefix("sha256:")
    return digest != label and len(digest) == 64 and set(digest) <= set("0123456789abcdef")


def judge_warcat(warc, warcat):
    try:
        done = subprocess.run([warcat, "verify", "--input", warc.path], capture_output=True, timeout=PATIENCE)
    except (subprocess.TimeoutExpired, OSError) as error:
        return object_to("warcat", error)
    if done.returncode == 0:
        return None
    coded = {fields.get("warc-record-id") for fields, _, coded in warc.records if coded}
    abroad = {f["warc-refers-to"] for f, kind, _ in warc.records if kind == "revisit" and "warc-refers-to" in f}
    problems = 0
    # The output is a JSON text sequence (RFC 7464): each text after a record separator.
    for text in done.stdout.decode("utf-8", "replace").split("\x1e"):
        if not text.strip():
            continue
        problems += 1
        problem = json.loads(text)
        kind = problem["kind"] if isinstance(problem["kind"], dict) else {problem["kind"]: None}
        if ("PayloadDigestMismatch" in kind or "ParsePayload" in kind) and problem["record_id"] in coded:
            continue
        if kind.get("ReferencedRecordMissing") in abroad:
            continue
        object_to("warcat", f"{problem['record_id']} {problem['kind']}")
    if not problems:
        object_to("warcat", done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}")
    return None


def judge_index(warc, ours):
    """Our index lines against those of cdxj-indexer over the same file, and against the bytes they point at."""
    out = io.StringIO()
    out.close = lambda: None
    with open(warc.path, "rb") as stream:
        indexer = CDXJIndexer(out, [stream], sort=False, filename=warc.name)
        indexer._do_write = lambda key, ts, index, _: theirs.append((key, ts, dict(index)))
        theirs = []
        indexer.process_one(stream, out, warc.name)
    data = Path(warc.path).read_bytes()
    mine = []
    for line in ours:
        key, ts, text = line.split(" ", 2)
        entry = json.loads(text)
        record_digest = entry.pop("recordDigest", None)
        start, length = int(entry["offset"]), int(entry["length"])
        stored = data[start : start + length]
        if record_digest != sha256(stored):
            object_to("index", f"recordDigest of {entry['url']} is {record_digest}")
        if not gzip.decompress(stored).startswith(b"WARC/1.1\r\n"):
            object_to("index", f"no record at {start}+{length}")
        mine.append((key, ts, entry))
    order = lambda lines: sorted((key, ts, json.dumps(entry, sort_keys=True)) for key, ts, entry in lines)
    for line in Counter(order(mine)) - Counter(order(theirs)):
        object_to("index", f"only in ours: {line}")
    for line in Counter(order(theirs)) - Counter(order(mine)):
        object_to("index", f"only in cdxj-indexer's: {line}")
    if list(ours) != sorted(set(ours)):
        object_to("index", "not sorted, or lines twice")
    return len(mine)


class Package:
    """A WACZ, checked against the text of the specification, 1.1.1."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.names = self.zip.namelist()

    def judge(self):
        if self.zip.testzip():
            object_to("package", f"bad CRC of {self.zip.testzip()}")
        if len(self.names) != len(set(self.names)):
            object_to("package", "a name twice")
        for name in ("datapackage.json", "datapackage-digest.json", "pages/pages.jsonl"):
            if name not in self.names:
                return object_to("package", f"no {name}")
        self.judge_manifest()
        self.judge_folders()
        self.judge_pages()
        return None

    def judge_manifest(self):
        text = self.zip.read("datapackage.json")
        manifest = json.loads(text)
        if manifest.get("profile") != "data-package" or manifest.get("wacz_version") != "1.1.1":
            object_to("package", "profile or wacz_version")
        for name in ("title", "created", "software"):
            if not manifest.get(name):
                print(f"note: the manifest has no {name}")
        listed = {resource["path"]: resource for resource in manifest["resources"]}
        if len({resource["name"] for resource in manifest["resources"]}) != len(listed):
            object_to("package", "a resource name or path twice")
        present = [name for name in self.names if not name.startswith("datapackage")]
        for name in set(present) ^ set(listed):
            object_to("package", f"{name} is in the zip or the manifest only")
        for name in set(present) & set(listed):
            data = self.zip.read(name)
            if (listed[name]["bytes"], listed[name]["hash"]) != (len(data), sha256(data)):
                object_to("package", f"length or hash of {name}")
        digest = json.loads(self.zip.read("datapackage-digest.json"))
        if (digest.get("path"), digest.get("hash")) != ("datapackage.json", sha256(text)):
            object_to("package", "datapackage-digest.json")

    def judge_folders(self):
        warcs = [name for name in self.names if name.startswith("archive/")]
        if not warcs or any(not name.endswith((".warc", ".warc.gz")) for name in warcs):
            object_to("package", f"archive/ holds {warcs}")
        indexes = [name for name in self.names if name.startswith("indexes/")]
        if not indexes:
            object_to("package", "no index")
        for info in self.zip.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                object_to("package", f"{info.filename} is not stored")
            if info.filename.count("/") > 1 or ".." in info.filename:
                object_to("package", f"path {info.filename}")

    def judge_pages(self):
        header, *pages = [json.loads(line) for line in self.zip.read("pages/pages.jsonl").decode().splitlines()]
        if header.get("format") != "json-pages-1.0" or not header.get("id"):
            object_to("package", "the page list has no header")
        for page in pages:
            if not page.get("url") or not page.get("ts"):
                object_to("package", f"page without url or ts: {page}")

    def index(self):
        """All index lines but the !meta ones."""
        lines = []
        for name in self.names:
            if name.startswith("indexes/") and not name.endswith(".idx"):
                data = self.zip.read(name)
                text = gzip.decompress(data) if name.endswith(".gz") else data
                lines += [line for line in text.decode().splitlines() if not line.startswith("!")]
        return lines


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", required=True, type=Path)
    args.add_argument("--warcat", required=True)
    args.add_argument("warc")
    args.add_argument("wacz", nargs="?")
    args.add_argument("index", nargs="?")
    args = args.parse_args()

    run("gunzip", "gunzip", "-t", args.warc)
    run("warcio", args.bin / "warcio", "check", args.warc)
    run("fastwarc", args.bin / "fastwarc", "check", "-q", args.warc)
    try:
        warc = Warc(args.warc)
    except Exception as error:  # whatever a reader throws at a broken file, the verdict is the same
        object_to("reading", error)
        return 1
    judge_form(warc)
    judge_warcat(warc, args.warcat)
    if args.index:
        count = judge_index(warc, Path(args.index).read_text().splitlines())
        print(f"index: {count} lines")
    if args.wacz:
        run("wacz validate", args.bin / "wacz", "validate", "-f", args.wacz)
        package = Package(args.wacz)
        package.judge()
        inside = package.zip.read("archive/" + warc.name) if "archive/" + warc.name in package.names else None
        if inside == Path(args.warc).read_bytes():
            judge_index(warc, package.index())
    print(f"{len(warc.records)} records: " + (f"{len(objections)} objections" if objections else "all judges agree"))
    return 1 if objections else 0


if __name__ == "__main__":
    sys.exit(main())
