#!/usr/bin/env python3
"""tools/coverage_check.py on made-up summaries."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import coverage_check  # noqa: E402

FILES = [{"filename": "src/a/x.cc", "line_covered": 90, "line_total": 100},
         {"filename": "src/a/y.cc", "line_covered": 100, "line_total": 100},
         {"filename": "src/ab/z.cc", "line_covered": 0, "line_total": 10}]


def run(thresholds):
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder, "s.json")
        limits = pathlib.Path(folder, "t.txt")
        summary.write_text(json.dumps({"files": FILES}))
        limits.write_text(thresholds)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = coverage_check.main([str(summary), str(limits)])
        return status, out.getvalue()


class Thresholds(unittest.TestCase):
    def test_lines_are_summed_over_the_path(self):
        self.assertEqual(run("src/a/ 95\n")[0], 0)
        status, out = run("src/a/ 95.1\n")
        self.assertEqual(status, 1)
        self.assertIn("src/a/x.cc: 10 lines not run", out)
        self.assertNotIn("y.cc", out)

    def test_a_path_that_matches_nothing_fails(self):
        self.assertEqual(run("src/gone/ 1\n")[0], 1)

    def test_comments_and_bad_lines(self):
        self.assertEqual(run("# all\n\nsrc/a/x.cc 90 # why\n")[0], 0)
        with self.assertRaises(ValueError):
            run("src/a/\n")


if __name__ == "__main__":
    unittest.main()
