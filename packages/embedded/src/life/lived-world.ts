/** The world of one start of a role: every port of it, through the life of that start. */
import type {
  CallContext,
  CallOptions,
  Client,
  Clock,
  Disk,
  DiskFile,
  KeyValue,
  KeyValueStores,
  ServedService,
  Transport,
  World,
} from "@stamp/ports";
import type { Life } from "./life.ts";

type Method = ServedService["service"]["methods"][number];
type Handle = (request: unknown, context: CallContext) => unknown;
type Call = (request: unknown, options: CallOptions) => unknown;

/** Files, stores and listeners of a role, which the system would close with a process. */
class Held {
  readonly #life: Life;
  readonly #closers = new Set<() => Promise<unknown>>();
  readonly #opening = new Set<Promise<unknown>>();

  constructor(life: Life) {
    this.#life = life;
  }

  /** Opens something. What is open after the end of the life is closed at once. `forget`: the role closes it itself. */
  open<T>(work: () => Promise<T>, closeIt: (opened: T) => Promise<unknown>): Promise<{ readonly opened: T; readonly forget: () => void }> {
    return this.#life.call(() => {
      const opening = work().then(async (opened) => {
        const close = (): Promise<unknown> => closeIt(opened);
        if (this.#life.ended) await close();
        else this.#closers.add(close);
        return { opened, forget: () => void this.#closers.delete(close) };
      });
      this.#opening.add(opening);
      const isOpen = (): void => void this.#opening.delete(opening);
      opening.then(isOpen, isOpen);
      return opening;
    });
  }

  async closeAll(): Promise<void> {
    const closers = [...this.#closers];
    this.#closers.clear();
    await Promise.allSettled([...this.#opening, ...closers.map((close) => close())]);
  }
}

export interface LivedWorld {
  readonly world: World;
  /** Closes what the role has open, after its life has ended. Calls that it serves or has made fail as when a connection breaks. */
  readonly closeAll: () => Promise<void>;
}

export function livedWorld(world: World, life: Life): LivedWorld {
  const held = new Held(life);
  return {
    world: {
      ...world,
      clock: livedClock(world.clock, life),
      disk: livedDisk(world.disk, life, held),
      keyValue: livedStores(world.keyValue, life, held),
      transport: livedTransport(world.transport, life, held),
    },
    closeAll: async () => {
      await world.transport.close();
      await held.closeAll();
    },
  };
}

function livedClock(clock: Clock, life: Life): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs(),
    suspendedMs: () => clock.suspendedMs(),
    after: (delayMs, callback) => {
      let isCancelled = false;
      const timer = clock.after(delayMs, () =>
        life.deliver(() => {
          if (!isCancelled) callback();
        }),
      );
      return {
        cancel: () => {
          isCancelled = true;
          timer.cancel();
        },
      };
    },
    ...(clock.untilRoundMs === undefined ? {} : { untilRoundMs: (delayMs) => clock.untilRoundMs?.(delayMs) as number }),
  };
}

function livedDisk(disk: Disk, life: Life, held: Held): Disk {
  return {
    open: async (path, options) => {
      const { opened, forget } = await held.open(
        () => disk.open(path, options),
        (file) => file.close(),
      );
      return livedFile(opened, life, forget);
    },
    exists: (path) => life.call(() => disk.exists(path)),
    list: (folder) => life.call(() => disk.list(folder)),
    remove: (path) => life.call(() => disk.remove(path)),
    rename: (from, to) => life.call(() => disk.rename(from, to)),
    syncFolder: (folder) => life.call(() => disk.syncFolder(folder)),
    writeAtomically: (path, content) => life.call(() => disk.writeAtomically(path, content)),
    readWhole: (path) => life.call(() => disk.readWhole(path)),
    space: () => life.call(() => disk.space()),
  };
}

const livedFile = (file: DiskFile, life: Life, closed: () => void): DiskFile => ({
  path: file.path,
  sizeBytes: () => life.call(() => file.sizeBytes()),
  read: (offsetBytes, lengthBytes, into) => life.call(() => file.read(offsetBytes, lengthBytes, into)),
  write: (offsetBytes, chunks) => life.call(() => file.write(offsetBytes, chunks)),
  allocate: (lengthBytes) => life.call(() => file.allocate(lengthBytes)),
  truncate: (lengthBytes) => life.call(() => file.truncate(lengthBytes)),
  sync: () => life.call(() => file.sync()),
  close: () =>
    life.call(() => {
      closed();
      return file.close();
    }),
});

function livedStores(stores: KeyValueStores, life: Life, held: Held): KeyValueStores {
  return {
    open: async (name) => {
      const { opened, forget } = await held.open(
        () => stores.open(name),
        async (given) => (given.kind === "opened" ? given.store.close() : undefined),
      );
      return opened.kind === "opened" ? { kind: "opened", store: livedStore(opened.store, life, forget) } : opened;
    },
    destroy: (name) => life.call(() => stores.destroy(name)),
  };
}

function livedStore(store: KeyValue, life: Life, closed: () => void): KeyValue {
  const { confirm, forgetOld } = store;
  return {
    batchMax: store.batchMax,
    get: (key) => life.call(() => store.get(key)),
    batch: (operations, options) => life.call(() => store.batch(operations, options)),
    range: (range) => life.each(() => store.range(range)),
    ...(confirm === undefined ? {} : { confirm: () => life.call(() => confirm.call(store)) }),
    ...(forgetOld === undefined ? {} : { forgetOld: (range) => life.call(() => forgetOld.call(store, range)) }),
    close: () =>
      life.call(() => {
        closed();
        return store.close();
      }),
  };
}

const isStream = (kind: Method["methodKind"]): boolean => kind === "client_streaming" || kind === "bidi_streaming";
const isStreamed = (kind: Method["methodKind"]): boolean => kind === "server_streaming" || kind === "bidi_streaming";

/** Requests and answers of the role are made by its code: only while it runs. What comes in passes through its life, too. */
function livedTransport(transport: Transport, life: Life, held: Held): Transport {
  const each = (stream: unknown): AsyncIterable<unknown> => life.each(() => stream as AsyncIterable<unknown>);

  const handlerOf = (method: Method, handle: Handle): Handle => {
    const input = (request: unknown): unknown => (isStream(method.methodKind) ? each(request) : request);
    return isStreamed(method.methodKind)
      ? (request, context) => life.each(() => handle(input(request), context) as AsyncIterable<unknown>)
      : (request, context) => life.call(() => handle(input(request), context) as Promise<unknown>);
  };
  const callOf = (method: Method, call: Call): Call => {
    const input = (request: unknown): unknown => (isStream(method.methodKind) ? each(request) : request);
    return isStreamed(method.methodKind)
      ? (request, options) => life.each(() => call(input(request), options) as AsyncIterable<unknown>)
      : (request, options) => life.call(() => call(input(request), options) as Promise<unknown>);
  };
  const livedService = ({ service, handlers, ...others }: ServedService): ServedService => {
    const given = handlers as Record<string, Handle | undefined>;
    const lived = service.methods.flatMap((method) => {
      const handle = given[method.localName];
      return handle === undefined ? [] : [[method.localName, handlerOf(method, handle.bind(handlers))]];
    });
    return { service, handlers: Object.fromEntries(lived), ...others };
  };

  return {
    ...(transport.sharesMessages === undefined ? {} : { sharesMessages: transport.sharesMessages }),
    giveBack: transport.giveBack,
    client: <S extends ServedService["service"]>(address: string, service: S): Client<S> => {
      const client = transport.client(address, service) as unknown as Record<string, Call>;
      return Object.fromEntries(
        service.methods.map((method) => [method.localName, callOf(method, client[method.localName] as Call)]),
      ) as unknown as Client<S>;
    },
    serve: async (listen, services) => {
      const { opened } = await held.open(
        () => transport.serve(listen, services.map(livedService)),
        (listener) => listener.close(0),
      );
      return opened;
    },
    close: () => life.call(() => transport.close()),
  };
}
