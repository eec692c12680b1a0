"""Real programs of others to test against: built once from pinned Go modules, and run on loopback.

`find` returns where a program is. It looks in `$KUBEBUILDER_ASSETS` first, then in `$PATH` for those of which any
version will do, then in the user's cache (`$XDG_CACHE_HOME/eastgate/programs`, outside of the checkout), and builds
what is in none of them. The folders of `go` hold the module lists: `go.mod` says which versions, `go.sum` what their
content is.
"""

from tests.programs.api_server import ApiServer, ControllerManager
from tests.programs.building import find
from tests.programs.crds import crds
from tests.programs.processes import Processes, free_port

__all__ = ["ApiServer", "ControllerManager", "Processes", "crds", "find", "free_port"]
