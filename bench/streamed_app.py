"""An app that reads streamed answers, and says when each content block ended for it: for ``live.py --streamed``.

    python bench/streamed_app.py CALLS

``claudescope.instrument()`` is all that it knows of claudescope. Each line of standard output has two times in seconds
since the epoch, as the app saw them: of a ``content_block_stop``, and of the event after it.
"""

import sys
import time

import anthropic

import claudescope

claudescope.instrument()
client = anthropic.Anthropic()
for _ in range(int(sys.argv[1])):
    ended = 0.0
    for event in client.messages.create(
        model="claude-sonnet-5-5",
        max_tokens=4000,
        messages=[{"role": "user", "content": "Explain it at length."}],
        stream=True,
    ):
        if ended:
            print(ended, time.time(), flush=True)
        ended = time.time() if event.type == "content_block_stop" else 0.0
claudescope.flush(5.0)
