# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package. Their texts are those of the C++ library.

A wrong argument is a ValueError or a TypeError.
"""

import builtins


class Error(Exception):
    """A call failed. `status` is the reason in one word; the text has object, cause and remedy.

    >>> import netio_daq as netio
    >>> publisher = netio.Publisher("127.0.0.1:0", fids=range(4))
    >>> try:
    ...     publisher.publish(4, "a text")
    ... except netio.Error as error:
    ...     error.status
    'not_owned'
    """

    status: str = "failed"


class TimeoutError(Error, builtins.TimeoutError):
    """A call could not do its work in time. `accepted` is the number of messages that a publishing
    call had accepted.

    >>> import netio_daq as netio
    >>> issubclass(netio.TimeoutError, TimeoutError)
    True
    """

    status = "again"
    accepted: int = 0


class ClosedError(Error):
    """The object or its connection is closed. `accepted` as in TimeoutError.

    >>> import netio_daq as netio
    >>> publisher = netio.Publisher("127.0.0.1:0")
    >>> publisher.close()
    >>> try:
    ...     publisher.publish(1, "a text")
    ... except netio.ClosedError as error:
    ...     error.status
    'closed'
    """

    status = "closed"
    accepted: int = 0


class FabricError(Error, OSError):
    """A step of the set-up failed: an address cannot be used, or a provider is missing.

    >>> import netio_daq as netio
    >>> publisher = netio.Publisher("127.0.0.1:0")
    >>> try:
    ...     netio.Publisher(publisher.address)
    ... except netio.FabricError as error:
    ...     error.status
    'failed'
    """


class RequestError(ClosedError):
    """A request ended without a whole reply. `end` is how: 'timed_out', 'canceled', 'disconnected',
    'no_reply', 'failed' or 'too_large'.

    >>> import netio_daq as netio
    >>> try:
    ...     netio.Requester("127.0.0.1:9").request("a question", timeout=0)
    ... except netio.RequestError as error:
    ...     error.end
    'timed_out'
    """

    end: str = "failed"


class RecordingError(Error, OSError):
    """A recording cannot be read or written: a file is damaged, the disk is full, a file exists.

    >>> import netio_daq as netio
    >>> try:
    ...     netio.RecordingReader("no such file.mcap")
    ... except netio.RecordingError as error:
    ...     error.status
    'failed'
    """
