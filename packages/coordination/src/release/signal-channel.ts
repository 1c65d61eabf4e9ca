/**
 * A push channel: who publishes a topic reaches everybody who is subscribed at that moment. One-way and stateless: nothing is kept for who
 * is not there (article "Synchronizing multiple nodes", second approach).
 */
export interface SignalChannel {
  /**
   * Calls `onSignal` for each signal of the topic until the subscription is closed. A lost connection is made again without end;
   * `onConnected` tells when signals do and do not arrive. Signals that are published while it is lost do not arrive later.
   */
  subscribe(topic: string, onSignal: () => void, onConnected?: (connected: boolean) => void): Subscription;
  /** Reaches who is subscribed now. Rejects if the channel does not answer. Returns the number of subscribers that it reached. */
  publish(topic: string, signal?: AbortSignal): Promise<number>;
}

export interface Subscription {
  close(): void;
}
