"""Links of HTML pages as Python's own parser sees them.

Standard input: one JSON object a line, {"url": where the page was served, "file": its bytes}.
Standard output: the same number of lines, each a JSON list of absolute http(s) URLs without fragments.
"""

import json
import sys
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit


class Links(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.base = None
        self.hrefs = []

    def handle_starttag(self, tag, attrs):
        # The first of several attributes of one name counts.
        href = dict(reversed(attrs)).get("href")
        if href is None:
            return
        if tag == "base" and self.base is None:
            self.base = href
        elif tag in ("a", "area"):
            self.hrefs.append(href)


def links_of(url, path):
    with open(path, encoding="utf-8") as stream:
        parser = Links()
        parser.feed(stream.read())
        parser.close()
    base = urljoin(url, parser.base) if parser.base else url
    found = {urldefrag(urljoin(base, href.strip())).url for href in parser.hrefs}
    return sorted(link for link in found if urlsplit(link).scheme in ("http", "https"))


for line in sys.stdin:
    page = json.loads(line)
    print(json.dumps(links_of(page["url"], page["file"])))
