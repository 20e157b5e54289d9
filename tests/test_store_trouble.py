"""What is the matter with a store: the words of each client for the same answer, and words that are no answer at all."""

import errno

import pytest

from penstock.store_trouble import Trouble, trouble_of, trouble_of_os

BUSY, REFUSED, FULL = Trouble.BUSY, Trouble.REFUSED, Trouble.FULL
AMAZON = "(Service: S3, Status Code: {}, Request ID: null) (SDK Attempt Count: 2)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Amazon's client in Java, with and without a name for the answer
        (f"software.amazon.awssdk.services.s3.model.S3Exception: slowly {AMAZON.format(503)}", BUSY),
        (f"S3Exception: {AMAZON.format(500)}", BUSY),
        (f"S3Exception: Too Many Requests {AMAZON.format(429)}", BUSY),
        (f"S3Exception: The provided token has expired. {AMAZON.format(403)}", REFUSED),
        (f"S3Exception: {AMAZON.format(507)}", FULL),
        (f"NoSuchKeyException: {AMAZON.format(404)}", None),
        ("SdkClientException: Unable to execute HTTP request: Connection reset (SDK Attempt Count: 2)", BUSY),
        ("SdkClientException: Unable to load credentials from any of the providers in the chain", REFUSED),
        # Arrow's, in C++
        ("When uploading object with key 'x' in bucket 'b': AWS Error SLOW_DOWN during PutObject operation: x", BUSY),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.", BUSY),
        ("AWS Error UNKNOWN (HTTP status 429) during PutObject operation: Unable to parse ExceptionName", BUSY),
        ("AWS Error UNKNOWN (HTTP status 403) during PutObject operation: ExceptionName: ExpiredToken", REFUSED),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", REFUSED),
        ("AWS Error INTERNAL_FAILURE during PutObject operation", BUSY),
        ("AWS Error NETWORK_CONNECTION during PutObject operation: curlCode: 56, Failure when receiving", BUSY),
        ("AWS Error NO_SUCH_BUCKET during PutObject operation: x", REFUSED),
        ("AWS Error NO_SUCH_KEY during GetObject operation: x", None),
        # Hadoop's, over Amazon's, Google's, Azure's and its own
        ("AWSServiceThrottledException: Writing Object on a/b: SlowDown", BUSY),
        ('Operation failed: "Ingress is over the account limit.", 503, PUT, https://x/y, ServerBusy', BUSY),
        ('Operation failed: "This request is not authorized.", 403, HEAD, https://x/y?timeout=90', REFUSED),
        ('GoogleJsonResponseException: 429 Too Many Requests { "code" : 429, "errors" : [ {', BUSY),
        ("BlobStorageException: Status code 503, ServerBusy", BUSY),
        ("SafeModeException: Cannot create file. Name node is in safe mode.", BUSY),
        ("DSQuotaExceededException: The DiskSpace quota is exceeded", FULL),
        ("java.net.UnknownHostException: store.example.com", BUSY),
        # disks
        ("java.io.IOException: No space left on device", FULL),
        ('IO Error: Could not write file "/lake/x.parquet": No space left on device', FULL),
        ("ParquetDecodingException: Can not read value at 1 in block 0", None),
    ],
)
def test_an_answer_means_the_same_whichever_client_repeats_it(text: str, expected: Trouble | None) -> None:
    assert trouble_of([text]) is expected


@pytest.mark.parametrize("name", ["SlowDown", "AccessDenied", "StorageFull", "status 503", "RequestTimeout"])
def test_the_name_of_a_table_is_no_answer_of_a_store(name: str) -> None:
    text = (
        f"FileNotFoundException: File s3://lake/shop/public/{name.replace(' ', '_')}-5f0e/data/x.parquet is not there"
    )

    assert trouble_of([text]) is None


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, FULL), (errno.EDQUOT, FULL), (errno.EACCES, REFUSED), (errno.ESTALE, BUSY), (errno.EIO, None)],
)
def test_a_disk_answers_by_a_number(number: int, expected: Trouble | None) -> None:
    assert trouble_of_os(OSError(number, "as the system says it")) is expected
