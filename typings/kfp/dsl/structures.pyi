class _Duration:
    seconds: int

class _RetryPolicy:
    backoff_max_duration: _Duration

class RetryPolicy:
    max_retry_count: int | None
    backoff_duration: str | None
    backoff_factor: float | None
    backoff_max_duration: str | None
    def to_proto(self) -> _RetryPolicy: ...
