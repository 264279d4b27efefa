"""REST APIs of the fake clouds, over HTTPS on the loopback interface, for the clouds' own client libraries.

Each `Route` has the cloud's operation name; a request without a route is rejected with 404.
"""

from ebbtide_rehearsal.cloud.rest.access import RestAccess, Served, rest_access, write_google_login

__all__ = ["RestAccess", "Served", "rest_access", "write_google_login"]
