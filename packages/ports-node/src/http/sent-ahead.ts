/**
 * The end of a connection whose client sent more requests ahead than are served (`pipelinedMax`). The requests within the bound are owed
 * their answers, so the connection lives until these are sent; what came behind is dropped meanwhile.
 *
 * Invariants:
 * - At most one read of the socket is parsed behind the last served request. The requests in it are held until the connection ends, so the
 *   door bounds their number over all connections; beyond, it ends the connection.
 * - The door ends its half of the connection first and reads on until the client has ended, too: closing a socket with unread bytes resets
 *   it, and a reset takes answers away that the client has not read.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests that are not served, of all connections of a door. */
export class IgnoredRequests {
  readonly #max: number;
  #held = 0;
  readonly #connections = new WeakMap<Socket, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts a request that came behind the last one that is answered, and stops reading requests from its connection. */
  add(socket: Socket): void {
    const held = this.#connections.get(socket);
    this.#connections.set(socket, (held ?? 0) + 1);
    this.#held++;
    if (held === undefined) {
      // Not inside the parser's call that brought the request.
      process.nextTick(dropIncoming, socket);
      socket.once("close", () => {
        this.#held -= this.#connections.get(socket) ?? 0;
      });
    }
    if (this.#held > this.#max) socket.destroy();
  }
}

/** Takes a socket's bytes from the HTTP parser and drops them. */
function dropIncoming(socket: Socket): void {
  socket.removeAllListeners("data");
  socket.on("data", () => {});
}

/** Resolves once the client has read the connection's last answer, which was written, and has closed its half; after `timeoutMs` at most. */
export async function endInStages(response: ServerResponse, timeoutMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once("close", resolve);
  // Until the answers before it are sent the answer has no socket.
  if (response.socket === null && !response.destroyed) {
    response.once("socket", () => resolve());
    await promise;
  }
  const { socket } = response;
  if (socket === null || socket.destroyed) return;
  await new Promise<void>((done) => {
    const timer = setTimeout(done, timeoutMs);
    const ended = (): void => {
      clearTimeout(timer);
      done();
    };
    socket.once("close", ended);
    socket.end(() => {
      if (socket.readableEnded) ended();
      else socket.once("end", ended).resume();
    });
  });
}
