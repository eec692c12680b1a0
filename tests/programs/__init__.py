"""Real programs of other projects to test against: built once from pinned Go modules, and run on loopback.

`find` returns the path of a program. It looks in `$KUBEBUILDER_ASSETS`, then in `$PATH` for programs that may have
any version, then in the user's cache (`$XDG_CACHE_HOME/eastgate/programs`, outside the checkout). Otherwise it builds
the program. The folders of `go` have the module lists: `go.mod` has the versions, and `go.sum` the hashes of the
modules.
"""

from tests.programs.api_server import ApiServer, ControllerManager
from tests.programs.building import find
from tests.programs.crds import crds
from tests.programs.processes import Processes, free_port

__all__ = ["ApiServer", "ControllerManager", "Processes", "crds", "find", "free_port"]
