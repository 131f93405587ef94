/**
 * Notices that a caller left before its answer was written whole. The response's own `close` event is not enough: on a
 * connection with several requests in flight only the first response has the socket, the others are never told.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Who wants to know of the end of a connection; one listener a socket, however many requests it carries. */
const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls `gone` once, at once or later, if the connection closes before the last byte of `response` was handed to the
 * operating system. A byte that never arrives after that cannot be told from one that does.
 */
export function onHangUp(request: IncomingMessage, response: ServerResponse, gone: () => void): void {
  const { socket } = request;
  if (socket.destroyed) {
    gone();
    return;
  }
  const callbacks = waiting.get(socket) ?? watch(socket);
  callbacks.add(gone);
  response.once('finish', () => callbacks.delete(gone));
}

function watch(socket: Socket): Set<() => void> {
  const callbacks = new Set<() => void>();
  waiting.set(socket, callbacks);
  socket.once('close', () => {
    for (const gone of callbacks) gone();
    callbacks.clear();
  });
  return callbacks;
}
