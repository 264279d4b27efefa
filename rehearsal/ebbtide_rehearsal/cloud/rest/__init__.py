"""REST APIs of the fake clouds, over HTTPS on the loopback interface, for the clouds' own client libraries.

Each `Route` has the cloud's operation name; a request without a route is rejected with 404.
"""

from ebbtide_rehearsal.cloud.rest.azure import Azure
from ebbtide_rehearsal.cloud.rest.google import Google
from ebbtide_rehearsal.cloud.rest.server import RestServer

__all__ = ["Azure", "Google", "RestServer"]
