/**
 * The listening port of a process, for plain connections of the bus and for gRPC alike: the first byte tells them apart (HTTP/2 begins
 * with "PRI * HTTP/2.0").
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { hostAndPort } from "./address.ts";
import { helloBytes } from "./frame-assembler.ts";

export interface DoorOptions {
  /** Within which a connection has to say what it is. */
  readonly helloTimeoutMs: number;
  readonly plain: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

export class Door {
  readonly #options: DoorOptions;
  readonly #server: Server;
  /** Connections that have not said what they are. */
  readonly #silent = new Set<Socket>();

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#server = createServer({ noDelay: true }, (socket) => this.#greet(socket));
  }

  /** Resolves to the port that was bound. Throws what node throws. */
  listen(address: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(hostAndPort(address), () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Takes no more connections; those that were handed over live on. */
  close(): void {
    this.#server.close();
    for (const socket of this.#silent) socket.destroy();
  }

  #greet(socket: Socket): void {
    const drop = (): void => void socket.destroy();
    const timer = setTimeout(drop, this.#options.helloTimeoutMs);
    const known = (): void => {
      clearTimeout(timer);
      this.#silent.delete(socket);
    };
    let begin = Buffer.alloc(0);
    const look = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      begin = Buffer.concat([begin, chunk]);
      const plain = begin[0] === helloBytes[0];
      if (plain && begin.length < helloBytes.length) return;
      known();
      socket.off("readable", look).off("error", drop).off("close", known);
      if (!plain) {
        socket.unshift(begin);
        this.#options.http2(socket);
      } else if (begin.equals(helloBytes)) this.#options.plain(socket);
      else socket.destroy();
    };
    this.#silent.add(socket);
    socket.on("error", drop).on("close", known).on("readable", look);
  }
}
