/**
 * One connection that carries bus frames both ways, as its users see it (`tcp-link.ts` makes it, tests make others). It knows neither the
 * content of frames nor what to do when a connection is lost.
 */
import type { FrameSink } from "./frame-writer.ts";

export interface FrameLink extends FrameSink {
  /** Takes no more frames from the connection, except those that were read already. */
  pause(): void;
  resume(): void;
  /** Ends the link after all written bytes went out. */
  end(): void;
  /** True if this process would prove itself with something else by now, and a new connection is due. */
  readonly stale?: boolean;
  /** Ends the connection at once. `closed` may still be told. */
  destroy(): void;
}

export interface LinkEvents {
  /** Notes that the handshake is over: frames may be written. */
  open(): void;
  /** Takes a frame and owns its bytes. */
  frame(bytes: Buffer): void;
  /**
   * Once or more often; `unauthenticated`: one side did not prove that it belongs to the stamp; `nobody`: no process listens at the address,
   * or the name has no address.
   */
  closed(why: string, unauthenticated?: boolean, nobody?: boolean): void;
}
