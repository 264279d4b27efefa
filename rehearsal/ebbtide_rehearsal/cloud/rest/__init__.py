"""REST APIs of the fake clouds, over HTTPS on the loopback interface, for the clouds' own client libraries.

Each `Route` has the cloud's operation name; a request without a route is rejected with 404.
"""
