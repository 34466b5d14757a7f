"""The version shown in the dashboard, the API schema and the logs."""

from importlib import metadata

try:
    VERSION = metadata.version("agentx-server")
except metadata.PackageNotFoundError:  # a source tree that was never installed
    VERSION = "dev"
