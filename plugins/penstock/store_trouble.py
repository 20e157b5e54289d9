"""What is the matter with a store, by what it answered and not by the class of an error: the same trouble has a name in each library.

Stores answer by a status and a code, disks by an errno, networks by the words of the socket. The clients of Amazon, Google and
Azure, Hadoop, Arrow and DuckDB repeat these in their texts. What fits nothing here may be the file's own.
"""

import errno
import re
from collections.abc import Iterable
from enum import Enum


class Trouble(Enum):
    """Say what a store lacks; whatever it is, it is no file's own, but that a single file may be refused."""

    BUSY = "it did not answer, or not in time, or asks to be asked less often"
    REFUSED = "it refused the login, the right or the place"
    FULL = "it is full"


_PATH = re.compile(r"\S*/\S*")  # names of tables are in it, and whoever makes a table chooses its name
_STATUS = re.compile(r"""(?:\bstatus(?:[ _]?code)?:?[ =]*|"code" ?: ?|", )([345]\d\d)\b""", re.IGNORECASE)
_STATUSES = {401: Trouble.REFUSED, 403: Trouble.REFUSED, 408: Trouble.BUSY, 429: Trouble.BUSY, 507: Trouble.FULL}
_CODES = {
    Trouble.FULL: (
        *("No space left on device", "Disk quota exceeded", "DiskQuotaExceeded", "StorageFull", "InsufficientStorage"),
        *("DSQuotaExceeded", "NSQuotaExceeded", "QuotaExceededException", "could only be written to 0 of the"),
    ),
    Trouble.REFUSED: (
        *("AccessDenied", "ACCESS_DENIED", "AccessControlException", "ExpiredToken", "TokenRefreshRequired"),
        *("InvalidAccessKeyId", "INVALID_ACCESS_KEY_ID", "InvalidToken", "SignatureDoesNotMatch"),
        *("SIGNATURE_DOES_NOT_MATCH", "RequestTimeTooSkewed", "REQUEST_TIME_TOO_SKEWED", "UNRECOGNIZED_CLIENT"),
        *("Unable to load credentials", "Forbidden", "Unauthorized", "NoSuchBucket", "NO_SUCH_BUCKET"),
        *("NoAuthWithAWSException", "Permission denied", "Operation not permitted", "Read-only file system"),
    ),
    Trouble.BUSY: (
        *("SlowDown", "SLOW_DOWN", "reduce your request rate", "Throttl", "THROTTLING", "TooManyRequests"),
        *("RequestTimeout", "REQUEST_TIMEOUT", "InternalError", "INTERNAL_FAILURE", "ServiceUnavailable"),
        *("SERVICE_UNAVAILABLE", "ServerBusy", "OperationAborted", "NETWORK_CONNECTION", "curlCode"),
        *("ConnectException", "NoRouteToHostException", "SocketException", "SocketTimeoutException", "SSLException"),
        *("UnknownHostException", "ConnectTimeoutException", "NoHttpResponseException", "ConnectionClosedException"),
        *("ApiCallTimeoutException", "ApiCallAttemptTimeoutException", "SdkClientException", "SafeModeException"),
        *("AWSStatus500Exception", "StandbyException", "RetriableException", "Connection refused", "Connection reset"),
        *("Connection timed out", "Name or service not known", "Temporary failure in name resolution"),
        *(
            "Too many open files",
            "Transport endpoint is not connected",
            "Stale file handle",
            "Host is down",
            "No route to host",
        ),
    ),
}
_ERRNOS = {
    Trouble.FULL: (errno.ENOSPC, errno.EDQUOT),
    Trouble.REFUSED: (errno.EACCES, errno.EPERM, errno.EROFS),
    Trouble.BUSY: (
        *(errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.ENETUNREACH),
        *(errno.EHOSTDOWN, errno.ENOTCONN, errno.ESTALE, errno.EPIPE, errno.EMFILE, errno.ENFILE),
    ),
}


def trouble_of(texts: Iterable[str]) -> Trouble | None:
    """Return the trouble that the texts of an error and of its causes tell, None where they tell of none.

    A status counts before a word: a store that is out of order may call it a refusal.
    """
    known = _PATH.sub(" ", "\n".join(texts))
    found = [trouble for status in _STATUS.findall(known) if (trouble := _of_status(int(status)))]
    found += [trouble for trouble, codes in _CODES.items() if any(code in known for code in codes)]
    return found[0] if found else None


def trouble_of_os(error: OSError) -> Trouble | None:
    """Return the trouble behind an error of the disk's or of Arrow's."""
    by_number = (trouble for trouble, numbers in _ERRNOS.items() if error.errno in numbers)
    return next(by_number, None) or trouble_of([str(error)])


def _of_status(status: int) -> Trouble | None:
    return _STATUSES.get(status) or (Trouble.BUSY if status >= 500 else None)
