"""Small real HTTP servers that answer as Grafana or Prometheus do, and keep the requests."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


@contextlib.contextmanager
def serving(answer):
    """``answer(method, path, body, headers)`` gives status and JSON; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, found = answer(self.command, self.path, body, self.headers)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Grafana:
    """Folders and dashboards as Grafana keeps them; ``token`` is the only one it takes."""

    def __init__(self, token="glsa_secret"):
        self.token = token
        self.folders, self.dashboards, self.writes = {}, {}, []
        self.provisioned = set()

    def __call__(self, method, path, body, headers):
        if headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"message": "Unauthorized"}
        parts = path.strip("/").split("/")
        assert parts[0] == "api"
        if method == "GET" and parts[1:3] == ["dashboards", "uid"]:
            found = self.dashboards.get(parts[3])
            meta = {"provisioned": parts[3] in self.provisioned}
            return (
                (404, {"message": "Dashboard not found"})
                if found is None
                else (200, {"dashboard": found, "meta": meta})
            )
        if method == "GET" and parts[1] == "folders":
            found = self.folders.get(parts[2])
            return (404, {"message": "folder not found"}) if found is None else (200, found)
        sent = json.loads(body)
        self.writes.append((path, sent))
        if path == "/api/folders":
            self.folders[sent["uid"]] = sent
            return 200, sent
        assert path == "/api/dashboards/db"
        assert sent["folderUid"] in self.folders
        uid = sent["dashboard"]["uid"]
        version = self.dashboards.get(uid, {}).get("version", 0) + 1
        self.dashboards[uid] = {**sent["dashboard"], "id": 7, "version": version}
        return 200, {"status": "success", "uid": uid, "version": version}


class Prometheus:
    """Answers queries from a table of query -> result; everything else is empty. Keeps what was asked."""

    def __init__(self, results=None, status=200):
        self.results, self.status, self.asked = results or {}, status, []

    def __call__(self, method, path, body, headers):
        asked = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        self.asked.append((method, path, asked))
        result = self.results.get(asked["query"], [])
        return self.status, {"status": "success", "data": {"resultType": "vector", "result": result}}
