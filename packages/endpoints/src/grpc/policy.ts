/**
 * Cooperative balancing as a load-balancing policy of @grpc/grpc-js: one channel to many addresses, calls go to the node that an
 * EndpointBalancer chooses.
 *
 *   registerCooperativePolicy();
 *   new Client("ipv4:10.0.0.1:11300,10.0.0.2:11300", credentials, cooperativePolicy({ ordinal: 3 }));
 *
 * Each address has one connection, made when its node is chosen first. While another node is chosen, calls go on with the one before.
 */
import { type ChannelOptions, connectivityState, experimental, status } from "@grpc/grpc-js";
import { EndpointBalancer } from "../balancer.ts";
import { requireNumber, UsageError } from "../time.ts";
import { GrpcAvailability } from "./availability.ts";

const { createChildChannelControlHelper, LeafLoadBalancer, QueuePicker, UnavailablePicker } = experimental;

type ChannelControlHelper = ConstructorParameters<typeof LeafLoadBalancer>[1];
type Leaf = InstanceType<typeof LeafLoadBalancer>;
type Endpoint = ConstructorParameters<typeof LeafLoadBalancer>[0];

export const cooperativePolicyName = "stamp_cooperative";

export interface PolicyOptions {
  /** Number of this caller among the callers of its kind, from 0. */
  readonly ordinal: number;
  /** Options of `BalancerOptions`. */
  readonly cacheMs?: number;
  readonly deadlineMs?: number;
}

/** Returns the channel options with which a channel uses the policy. A UsageError if an option is out of its range. */
export function cooperativePolicy(options: PolicyOptions): ChannelOptions {
  // Here, because grpc-js passes over a config that it can't parse, and another policy would choose.
  checked(options);
  return { "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ [cooperativePolicyName]: options }] }) };
}

type Ask = (address: string, signal: AbortSignal) => Promise<boolean>;

/** Makes the policy known to grpc-js, once in a process. `ask` asks a node; default: `stamp.v1.Availability` without encryption. */
export function registerCooperativePolicy(ask: Ask = new GrpcAvailability().ask): void {
  if (experimental.isLoadBalancerNameRegistered(cooperativePolicyName)) {
    throw new UsageError("the policy is registered; call registerCooperativePolicy once in a process");
  }
  class Balancer extends CooperativeLoadBalancer {
    constructor(helper: ChannelControlHelper) {
      super(helper, ask);
    }
  }
  experimental.registerLoadBalancerType(cooperativePolicyName, Balancer, CooperativeConfig);
}

class CooperativeConfig {
  readonly options: PolicyOptions;

  constructor(options: PolicyOptions) {
    this.options = options;
  }

  getLoadBalancerName(): string {
    return cooperativePolicyName;
  }

  toJsonObject(): object {
    return { [cooperativePolicyName]: this.options };
  }

  /** Makes the policy from the service config, for grpc-js. Refuses values out of range, which would end the process later. */
  static createFromJson(options: PolicyOptions): CooperativeConfig {
    return new CooperativeConfig(checked(options));
  }
}

function checked({ ordinal, cacheMs = 5_000, deadlineMs = 1_000 }: PolicyOptions): PolicyOptions {
  requireNumber("ordinal", ordinal, 0, Number.MAX_SAFE_INTEGER);
  if (!Number.isInteger(ordinal)) throw new UsageError(`ordinal is ${ordinal}; give this caller's number among its like, from 0`);
  requireNumber("cacheMs", cacheMs, 1, 86_400_000);
  requireNumber("deadlineMs", deadlineMs, 1, 600_000);
  return { ordinal, cacheMs, deadlineMs };
}

const addressOf = (endpoint: Endpoint): string => {
  const [address] = endpoint.addresses;
  if (address === undefined) return "";
  if (!("port" in address)) return `unix:${address.path}`;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
};

class CooperativeLoadBalancer {
  readonly #helper: ChannelControlHelper;
  readonly #ask: Ask;
  #leaves = new Map<string, Leaf>();
  #balancer: EndpointBalancer | undefined;
  #cacheMs = 0;
  #chosen: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #destroyed = false;

  constructor(helper: ChannelControlHelper, ask: Ask) {
    this.#helper = helper;
    this.#ask = ask;
  }

  updateAddressList(
    endpoints: { readonly ok: true; readonly value: Endpoint[] } | { readonly ok: false; readonly error: { readonly details: string } },
    config: { getLoadBalancerName(): string },
    options: ChannelOptions,
    note: string,
  ): boolean {
    if (!(config instanceof CooperativeConfig)) return false;
    if (!endpoints.ok) {
      if (this.#leaves.size === 0) this.#fail(endpoints.error.details);
      return true;
    }
    const helper = createChildChannelControlHelper(this.#helper, { updateState: () => this.#update() });
    const leaves = new Map<string, Leaf>();
    for (const endpoint of endpoints.value) {
      const address = addressOf(endpoint);
      leaves.set(address, this.#leaves.get(address) ?? new LeafLoadBalancer(endpoint, helper, options, note));
    }
    for (const [address, leaf] of this.#leaves) if (!leaves.has(address)) leaf.destroy();
    this.#leaves = leaves;
    if (this.#chosen !== undefined && !leaves.has(this.#chosen)) this.#chosen = undefined;
    const nodes = [...leaves.keys()].sort();
    if (this.#balancer === undefined) {
      const { ordinal, cacheMs = 5_000, deadlineMs = 1_000 } = config.options;
      this.#cacheMs = cacheMs;
      this.#balancer = new EndpointBalancer({ nodes, ordinal, cacheMs, deadlineMs, isAvailable: this.#ask });
    } else this.#balancer.setNodes(nodes);
    this.#helper.updateState(connectivityState.CONNECTING, new QueuePicker(this), null);
    this.#chooseNow();
    return true;
  }

  exitIdle(): void {
    this.#leaf()?.exitIdle();
  }

  /** The connections keep no back-off of their own. */
  resetBackoff(): void {}

  destroy(): void {
    this.#destroyed = true;
    clearTimeout(this.#timer);
    for (const leaf of this.#leaves.values()) leaf.destroy();
    this.#leaves.clear();
  }

  getTypeName(): string {
    return cooperativePolicyName;
  }

  #leaf(): Leaf | undefined {
    return this.#chosen === undefined ? undefined : this.#leaves.get(this.#chosen);
  }

  #chooseNow(): void {
    clearTimeout(this.#timer);
    void this.#balancer?.resolve().then((resolution) => {
      if (this.#destroyed) return;
      if (resolution.kind === "none") {
        this.#chosen = undefined;
        this.#fail(`no node says that it is available; asked again in ${Math.ceil(resolution.retryAfterMs)} ms`);
        this.#again(resolution.retryAfterMs);
        return;
      }
      this.#chosen = resolution.node;
      const leaf = this.#leaf();
      if (leaf?.getConnectivityState() === connectivityState.IDLE) leaf.startConnecting();
      this.#update();
      this.#again(this.#cacheMs);
    });
  }

  #again(afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#chooseNow(), afterMs);
    this.#timer.unref();
  }

  /** Tells the channel the state of the chosen node's connection. */
  #update(): void {
    const leaf = this.#leaf();
    if (leaf === undefined || this.#destroyed) return;
    const state = leaf.getConnectivityState();
    if (state === connectivityState.TRANSIENT_FAILURE && this.#chosen !== undefined) {
      // It said yes a moment ago and can't be reached now: another one is asked.
      this.#balancer?.reportFailed(this.#chosen);
      this.#chosen = undefined;
      this.#helper.updateState(connectivityState.CONNECTING, new QueuePicker(this), null);
      this.#chooseNow();
      return;
    }
    if (state === connectivityState.IDLE) leaf.exitIdle();
    this.#helper.updateState(state, leaf.getPicker(), null);
  }

  #fail(details: string): void {
    this.#helper.updateState(connectivityState.TRANSIENT_FAILURE, new UnavailablePicker({ code: status.UNAVAILABLE, details }), details);
  }
}
