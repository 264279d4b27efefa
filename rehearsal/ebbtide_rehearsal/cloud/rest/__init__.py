"""REST APIs of the fake clouds, over HTTPS on the loopback, for the clouds' own client libraries.

Each `Route` names the cloud's operation; a request without a route is refused with 404.
"""

from ebbtide_rehearsal.cloud.rest.azure import Azure
from ebbtide_rehearsal.cloud.rest.google import Google
from ebbtide_rehearsal.cloud.rest.server import RestServer

__all__ = ["Azure", "Google", "RestServer"]
