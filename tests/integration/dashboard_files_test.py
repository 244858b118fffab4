"""The files of the dashboard at the admin endpoint, as the program was built: with them, or with
WEIR_DASHBOARD=OFF (WEIR_WITHOUT_DASHBOARD=1 says so) without any."""

import gzip
import os
import re
import subprocess
import unittest

from processes import WEIR, Process, ProcessTest, Weir, get

WITHOUT = os.environ.get("WEIR_WITHOUT_DASHBOARD") == "1"
BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


class DashboardFiles(ProcessTest):
    def setUp(self):
        self.gateway = self.started(Weir("--to", "127.0.0.1:1"))

    def is_the_list_of_pages(self, answer):
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["content-type"].startswith("text/plain"), answer.headers)
        self.assertIn(b"/metrics", answer.body)
        self.assertNotIn(b"<", answer.body)

    def test_a_program_reads_the_list_of_pages(self):
        self.is_the_list_of_pages(get(self.gateway.admin))

    @unittest.skipUnless(WITHOUT, "built with the dashboard")
    def test_without_it_a_browser_reads_the_same_list_and_there_are_no_files(self):
        self.is_the_list_of_pages(get(self.gateway.admin, headers=BROWSER))
        for path in ("/dashboard", "/dashboard/", "/dashboard/index.html", "/dashboard/app.js"):
            self.assertEqual(get(self.gateway.admin, path, headers=BROWSER).status, 404, path)
        self.assertEqual(get(self.gateway.admin, "/live?view=x").status, 400)  # weir top is served

    @unittest.skipUnless(WITHOUT, "built with the dashboard")
    def test_without_it_the_demo_names_no_dashboard(self):
        demo = self.started(Process(WEIR, "demo", "--port", "0", "--admin-port", "0",
                                    stdout=subprocess.PIPE))
        self.assertRegex(demo.child.stdout.readline(), r"^gateway +http://")

    @unittest.skipIf(WITHOUT, "built without the dashboard")
    def test_a_browser_gets_the_page_and_every_file_that_it_names(self):
        page = get(self.gateway.admin, headers=BROWSER)
        self.assertTrue(page.headers["content-type"].startswith("text/html"))
        named = re.findall(rb'(?:src|href)="(/dashboard/[^"]+)"', page.body)
        self.assertGreater(len(named), 2)
        seen = set()
        while named:
            path = named.pop().decode()
            if path in seen:
                continue
            seen.add(path)
            plain = get(self.gateway.admin, path)
            self.assertEqual(plain.status, 200, path)
            small = get(self.gateway.admin, path, headers={"accept-encoding": "gzip"})
            self.assertEqual(gzip.decompress(small.body), plain.body, path)
            tag = {"if-none-match": plain.headers["etag"]}
            self.assertEqual(get(self.gateway.admin, path, headers=tag).status, 304, path)
            named += [b"/dashboard/" + name for name in
                      re.findall(rb'^import .* from "\./([^"]+)"', plain.body, re.MULTILINE)]
        self.assertGreater(len(seen), 25, "modules name each other")


if __name__ == "__main__":
    unittest.main()
