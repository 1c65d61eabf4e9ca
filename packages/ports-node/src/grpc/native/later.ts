/**
 * Clients over grpc-js. Loading it takes tens of milliseconds and 8 MB of memory, and most processes never use it,
 * so it is loaded at the first call.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";

/** Methods of one server over grpc-js. */
interface MadeClient {
  method(service: DescService, method: DescMethod): unknown;
  close(): void;
}

type StreamOut = (...given: unknown[]) => AsyncIterable<object>;
type SingleAnswer = (...given: unknown[]) => Promise<unknown>;

/**
 * Client of grpc-js that is made at the first call. Its methods behave as those of the client that it makes. If it can't be made, the calls
 * that wait for it fail, and the next call tries again.
 */
export class LaterClient {
  readonly #make: () => Promise<MadeClient>;
  #made: Promise<MadeClient> | undefined;
  #isClosed = false;

  constructor(make: () => Promise<MadeClient>) {
    this.#make = make;
  }

  method(service: DescService, method: DescMethod): unknown {
    let found: unknown;
    const find = async (): Promise<unknown> => {
      found ??= (await this.#client()).method(service, method);
      return found;
    };
    if (method.methodKind === "unary" || method.methodKind === "client_streaming")
      return async (...given: unknown[]) => ((await find()) as SingleAnswer)(...given);
    return async function* (...given: unknown[]): AsyncIterable<object> {
      yield* ((await find()) as StreamOut)(...given);
    };
  }

  /** Calls that come later are refused. */
  close(): void {
    this.#isClosed = true;
    this.#made?.then(
      (client) => client.close(),
      // The calls that wait are told.
      () => {},
    );
  }

  #client(): Promise<MadeClient> {
    this.#made ??= this.#make().then(
      (client) => {
        if (this.#isClosed) client.close();
        return client;
      },
      (error: unknown) => {
        this.#made = undefined;
        throw error;
      },
    );
    return this.#made;
  }
}
