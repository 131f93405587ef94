/**
 * Notices that a caller left before its answer was written whole. It watches the connection and not the response: with
 * several requests in flight on one connection, some versions of Node (20 is one) tell only the first response of its
 * end, and the others would hold locks for nobody.
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
