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
  Timer,
  Transport,
  World,
} from "@stamp/ports";
import type { RoleLife } from "./life.ts";

type Method = ServedService["service"]["methods"][number];
type Handle = (request: unknown, context: CallContext) => unknown;
type Call = (request: unknown, options: CallOptions) => unknown;

/** Files, stores, listeners and timers of a role, which the system would take back with a process. */
class Held {
  readonly #life: RoleLife;
  readonly #closers = new Set<() => Promise<unknown>>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #timers = new Set<Timer>();

  constructor(life: RoleLife) {
    this.#life = life;
  }

  /** Opens something. What is open after the end of the life is closed at once. `forget`: the role closes it itself. */
  open<T>(work: () => Promise<T>, closeIt: (opened: T) => Promise<unknown>): Promise<{ readonly opened: T; readonly forget: () => void }> {
    return this.call(async () => {
      const opened = await work();
      const close = (): Promise<unknown> => closeIt(opened);
      if (this.#life.ended) await close();
      else this.#closers.add(close);
      return { opened, forget: () => void this.#closers.delete(close) };
    });
  }

  /** Does the same as `call` of the life. What is under way when the life ends is over before `closeAll` resolves. */
  call<T>(work: () => Promise<T>): Promise<T> {
    return this.#life.call(() => {
      const working = work();
      this.#underWay.add(working);
      const isOver = (): void => void this.#underWay.delete(working);
      working.then(isOver, isOver);
      return working;
    });
  }

  after(clock: Clock, delayMs: number, callback: () => void): Timer {
    // After its end nothing that the role does has an effect.
    if (this.#life.ended) return { cancel: () => {} };
    let isCancelled = false;
    const timer = clock.after(delayMs, () => {
      this.#timers.delete(timer);
      this.#life.deliver(() => {
        if (!isCancelled) callback();
      });
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        isCancelled = true;
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }

  async closeAll(): Promise<void> {
    // A timer that is due in an hour would keep the role in memory until then.
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    const closers = [...this.#closers];
    this.#closers.clear();
    await Promise.allSettled([...this.#underWay, ...closers.map((close) => close())]);
  }
}

export interface LivedWorld {
  readonly world: World;
  /** Closes what the role has open, after its life has ended. Calls that it serves or has made fail as when a connection breaks. */
  readonly closeAll: () => Promise<void>;
}

export function livedWorld(world: World, life: RoleLife): LivedWorld {
  const held = new Held(life);
  return {
    world: {
      ...world,
      clock: livedClock(world.clock, held),
      disk: livedDisk(world.disk, held),
      keyValue: livedStores(world.keyValue, life, held),
      transport: livedTransport(world.transport, life, held),
    },
    closeAll: async () => {
      await world.transport.close();
      await held.closeAll();
    },
  };
}

function livedClock(clock: Clock, held: Held): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs(),
    suspendedMs: () => clock.suspendedMs(),
    after: (delayMs, callback) => held.after(clock, delayMs, callback),
    ...(clock.untilRoundMs === undefined ? {} : { untilRoundMs: (delayMs) => clock.untilRoundMs?.(delayMs) as number }),
  };
}

function livedDisk(disk: Disk, held: Held): Disk {
  return {
    open: async (path, options) => {
      const { opened, forget } = await held.open(
        () => disk.open(path, options),
        (file) => file.close(),
      );
      return livedFile(opened, held, forget);
    },
    exists: (path) => held.call(() => disk.exists(path)),
    list: (folder) => held.call(() => disk.list(folder)),
    remove: (path) => held.call(() => disk.remove(path)),
    rename: (from, to) => held.call(() => disk.rename(from, to)),
    syncFolder: (folder) => held.call(() => disk.syncFolder(folder)),
    writeAtomically: (path, content) => held.call(() => disk.writeAtomically(path, content)),
    readWhole: (path) => held.call(() => disk.readWhole(path)),
    space: () => held.call(() => disk.space()),
  };
}

const livedFile = (file: DiskFile, held: Held, closed: () => void): DiskFile => ({
  path: file.path,
  sizeBytes: () => held.call(() => file.sizeBytes()),
  read: (offsetBytes, lengthBytes, into) => held.call(() => file.read(offsetBytes, lengthBytes, into)),
  write: (offsetBytes, chunks) => held.call(() => file.write(offsetBytes, chunks)),
  allocate: (lengthBytes) => held.call(() => file.allocate(lengthBytes)),
  truncate: (lengthBytes) => held.call(() => file.truncate(lengthBytes)),
  sync: () => held.call(() => file.sync()),
  close: () =>
    held.call(() => {
      closed();
      return file.close();
    }),
});

function livedStores(stores: KeyValueStores, life: RoleLife, held: Held): KeyValueStores {
  return {
    open: async (name) => {
      const { opened, forget } = await held.open(
        () => stores.open(name),
        async (given) => (given.kind === "opened" ? given.store.close() : undefined),
      );
      return opened.kind === "opened" ? { kind: "opened", store: livedStore(opened.store, life, held, forget) } : opened;
    },
    destroy: (name) => held.call(() => stores.destroy(name)),
  };
}

function livedStore(store: KeyValue, life: RoleLife, held: Held, closed: () => void): KeyValue {
  const { confirm, forgetOld } = store;
  return {
    batchMax: store.batchMax,
    get: (key) => held.call(() => store.get(key)),
    batch: (operations, options) => held.call(() => store.batch(operations, options)),
    range: (range) => life.each(() => store.range(range)),
    ...(confirm === undefined ? {} : { confirm: () => held.call(() => confirm.call(store)) }),
    ...(forgetOld === undefined ? {} : { forgetOld: (range) => held.call(() => forgetOld.call(store, range)) }),
    close: () =>
      held.call(() => {
        closed();
        return store.close();
      }),
  };
}

const isStream = (kind: Method["methodKind"]): boolean => kind === "client_streaming" || kind === "bidi_streaming";
const isStreamed = (kind: Method["methodKind"]): boolean => kind === "server_streaming" || kind === "bidi_streaming";

/** Returns a transport for the role's life: calls of the role, and those to it, pass only while it runs. */
function livedTransport(transport: Transport, life: RoleLife, held: Held): Transport {
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
