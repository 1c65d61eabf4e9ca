"""
Plugin of pytest that gives suites a stamp where they start the emulator by Docker: the tests are theirs, unmodified.
STAMP_BLOB_PORT: port of the Blob service on 127.0.0.1.
"""

import os
import sys
import types

address = f"127.0.0.1:{os.environ['STAMP_BLOB_PORT']}"


class Container:
    """Stands for the container that adlfs runs."""

    def stop(self):
        pass


class Engine:
    """Stands for the Docker engine: the stamp runs already."""

    containers = types.SimpleNamespace(run=lambda *_args, **_options: Container())


sys.modules["docker"] = types.SimpleNamespace(from_env=Engine)

try:
    from adlfs.tests import constants
except ImportError:
    pass
else:
    constants.CONN_STR = constants.CONN_STR.replace(constants.HOST, address)
    constants.HOST = address
    constants.URL = f"http://{address}"

try:
    import requests
except ImportError:
    pass
else:
    get = requests.get

    def answered(url, **options):
        """universal_pathlib waits until a server of this name answers."""
        answer = get(url, **options)
        answer.headers["Server"] = f"Azurite, which is {answer.headers.get('Server')}"
        return answer

    requests.get = answered
