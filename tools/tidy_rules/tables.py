"""The tables of metrics and options, and the reference pages: the same names in both."""

import re

_STRING = r'"((?:[^"\\]|\\.)*)"'
_METRIC = re.compile(r"^WEIR_METRIC\(\s*\w+,\s*" + _STRING, re.MULTILINE)
_OPTION = re.compile(r"^WEIR_OPTION\(\s*" + _STRING + r",\s*" + _STRING, re.MULTILINE)
_UPSTREAM_OPTION = re.compile(r"^WEIR_UPSTREAM_OPTION\(\s*" + _STRING + r",\s*" + _STRING,
                              re.MULTILINE)
_ROUTE_OPTION = re.compile(r"^WEIR_ROUTE_OPTION\(\s*" + _STRING, re.MULTILINE)
_HEADING = re.compile(r"#+ (?:\[+([\w.]+)\]+)?")
_ROW = re.compile(r"\|\s*`([^`]+)`")  # first column of a table


def _metrics(text):
    return _METRIC.findall(text)


def _shown_metrics(page):
    for number, line in enumerate(page.lines, 1):
        row = _ROW.match(line)
        if row and row.group(1).startswith(("weir_", "process_")):
            yield row.group(1), number


def _options(text):
    rows = _OPTION.findall(text) + _UPSTREAM_OPTION.findall(text)
    names = [f"{section}.{name}" for section, name in rows]
    return names + [f"route.{name}" for name in _ROUTE_OPTION.findall(text)]


def _shown_options(page):
    """Rows under a heading that names a section: `## [tls]`, `## [[route]]`."""
    section = None
    for number, line in enumerate(page.lines, 1):
        heading, row = _HEADING.match(line), _ROW.match(line)
        if heading:
            section = heading.group(1)
        elif row and section:
            yield f"{section}.{row.group(1)}", number


PAIRS = (("internal/metrics/metrics.def", _metrics, "docs/reference/metrics.md", _shown_metrics),
         ("src/config/options.def", _options, "docs/reference/options.md", _shown_options))


def check(tree):
    for table_path, names_in, page_path, shown_on in PAIRS:
        table, page = tree.files.get(table_path), tree.files.get(page_path)
        if table is None:
            continue
        names = names_in(table.text)
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield table.finding(0, f"`{name}` stands there twice")
        if page is None:
            yield table.finding(0, f"{page_path}, its reference page, is missing")
            continue
        shown = dict(shown_on(page))
        for name in sorted(set(names) - set(shown)):
            yield table.finding(0, f"`{name}` is not in {page_path}")
        for name in sorted(set(shown) - set(names)):
            yield page.finding(shown[name], f"`{name}` is not in {table_path}")
