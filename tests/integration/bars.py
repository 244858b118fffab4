"""How strict a figure is judged. On a busy machine shares and times move a little: a usual run
tells a gateway that protects its service from one that does not, a run with WEIR_BARS=strict
(label stress, on a quiet machine) holds the figure that is promised."""

import os

STRICT = os.environ.get("WEIR_BARS") == "strict"


def bar(promised, usual):
    return promised if STRICT else usual
