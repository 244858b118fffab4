"""The files of the project as the rules see them."""

import dataclasses
import functools
import os
import pathlib
import re
import tomllib

SKIPPED_FOLDERS = {".git", "build", "__pycache__", "node_modules", "corpus"}
TEXT_SUFFIXES = {".cc", ".h", ".def", ".py", ".sh", ".cmake", ".txt", ".md", ".toml", ".json",
                 ".in", ".yml", ".yaml", ".js", ".css", ".html", ".service", ".supp", ""}
EXCEPTIONS_PATH = "tools/tidy_exceptions.toml"

# Comments, raw strings, strings and character literals; a quote inside a number is a separator.
_NOT_CODE = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL | re.VERBOSE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


class File:
    """One text file. `code` is its text with comments and literals blanked, lines kept."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.name = path.rsplit("/", 1)[-1]
        self.folder = path.rpartition("/")[0]
        self.stem, _, self.suffix = self.name.rpartition(".")
        parts = path.split("/")
        self.top = parts[0] if len(parts) > 1 else ""
        self.is_public = path.startswith("include/weir/")
        self.is_stable = self.is_public and not path.startswith("include/weir/experimental/")
        self.layer = None
        if self.is_public and len(parts) > 3:
            self.layer = parts[2 if self.is_stable else 3]
        elif self.top in ("src", "internal") and len(parts) > 2:
            self.layer = parts[1]
        self.is_cpp = self.suffix in ("cc", "h")
        self.is_test = (self.stem.endswith(("_test", "_test_support", "_testing"))
                        or self.top in ("tests", "fuzz"))
        self.is_bench = self.stem.endswith("_bench") or self.top == "bench"

    @functools.cached_property
    def lines(self):
        return self.text.split("\n")[:-1] if self.text.endswith("\n") else self.text.split("\n")

    @functools.cached_property
    def code(self):
        return _NOT_CODE.sub(_blank, self.text)

    @functools.cached_property
    def includes(self):
        """(line, is_system, name) of each #include."""
        return [(self.line_of(m.start(2)), m.group(1) == "<", m.group(2))
                for m in _INCLUDE.finditer(self.text)]

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def finding(self, line, text):
        return Finding(self.path, line, text)


class Exceptions:
    """tools/tidy_exceptions.toml: one table per rule, path = reason."""

    def __init__(self, text=""):
        self.tables = tomllib.loads(text)
        self.used = set()

    def get(self, rule, path):
        value = self.tables.get(rule, {}).get(path)
        if value is not None:
            self.used.add((rule, path))
        return value

    def unused(self):
        return [Finding(EXCEPTIONS_PATH, 0, f'[{rule}] "{path}" is no longer needed: remove it')
                for rule, table in self.tables.items() for path in table
                if (rule, path) not in self.used]


class Tree:
    def __init__(self, texts, other_paths=()):
        self.files = {path: File(path, text) for path, text in sorted(texts.items())}
        self.paths = set(self.files) | set(other_paths)
        self.exceptions = Exceptions(texts.get(EXCEPTIONS_PATH, ""))

    @classmethod
    def from_disk(cls, root):
        texts, others = {}, set()
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
            for name in names:
                path = pathlib.Path(folder, name)
                relative = path.relative_to(root).as_posix()
                if path.is_symlink() or relative == ".git":
                    continue
                text = _read_text(path)
                if text is None:
                    others.add(relative)
                else:
                    texts[relative] = text
        return cls(texts, others)

    @property
    def cpp(self):
        return (f for f in self.files.values() if f.is_cpp)


def _read_text(path):
    if path.suffix not in TEXT_SUFFIXES:
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
