"""Small UDP packets between random hosts of a network at a steady rate; every packet is counted."""

import random
import select
import socket
import threading
import time

from testbed.emulation.network import EmulatedNetwork

_PORT = 9_999
_PAYLOAD = bytes(64)
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 1 << 23
_LAST_PACKETS_S = 2.0
_BURST = 100


class UdpLoad:
    """A context manager that sends packets; afterwards `sent` and `received` are final."""

    def __init__(self, network: EmulatedNetwork, packets_per_s: float, seed: int) -> None:
        self.sent = self.received = 0
        self._rate = packets_per_s
        self._chance = random.Random(seed)
        self._ended = threading.Event()
        self._sockets = [self._open_socket(network, host.name) for host in network.hosts]
        self._addresses = [endpoint.getsockname() for endpoint in self._sockets]

    def __enter__(self) -> "UdpLoad":
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for endpoint in self._sockets:
            endpoint.close()

    @staticmethod
    def _open_socket(network: EmulatedNetwork, host: str) -> socket.socket:
        with network.inside(host):
            endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        endpoint.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        endpoint.bind((network.underlay.address[host], _PORT))
        return endpoint

    def _send(self) -> None:
        start = time.perf_counter()
        count = len(self._sockets)
        while not self._ended.is_set():
            behind = (time.perf_counter() - start) * self._rate - self.sent
            for _ in range(min(int(behind), _BURST)):
                source = self._chance.randrange(count)
                target = (source + self._chance.randrange(1, count)) % count
                self._sockets[source].sendto(_PAYLOAD, self._addresses[target])
                self.sent += 1
            if behind < _BURST:
                time.sleep(0.001)

    def _receive(self) -> None:
        poller = select.epoll()
        by_descriptor = {endpoint.fileno(): endpoint for endpoint in self._sockets}
        for descriptor in by_descriptor:
            poller.register(descriptor, select.EPOLLIN)
        while True:
            ready = poller.poll(_LAST_PACKETS_S)
            if not ready and self._ended.is_set():
                return
            for descriptor, _ in ready:
                self._drain(by_descriptor[descriptor])

    def _drain(self, endpoint: socket.socket) -> None:
        try:
            while True:
                endpoint.recv(2_048)
                self.received += 1
        except BlockingIOError:
            pass
