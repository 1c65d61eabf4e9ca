/**
 * Who may depend on whom. Imports go one way: services → async packages → pure packages; adapters implement ports; what people hold in
 * their hands stands above all of it. A package that is missing here has no place yet: give it one.
 */
export interface Layer {
  readonly kind: "pure" | "async" | "adapter" | "service" | "hands" | "library" | "tests";
  /** Our own packages that its code (not its tests) may import. */
  readonly allowed: readonly string[];
}

const pure = [
  "base",
  "extent",
  "stream",
  "lsm",
  "partition-map",
  "lease",
  "admission",
  "linearizability",
  "objects",
  "azure-rest",
  "erasure",
  "geo",
  "tree",
  "raft",
];
const async = ["ports", "wire", "etcd", "histories", "metadata-store", "stream-client", "range-partition"];
const roles = ["location-service", "lock-service", "stream-manager", "extent-node", "partition-manager", "partition-server", "front-end"];
const hands = ["cluster", "drills", "embedded"];

const service: Layer = { kind: "service", allowed: [...pure, ...async, "ports-node"] };

export const layers: Readonly<Record<string, Layer>> = {
  base: { kind: "pure", allowed: [] },
  extent: { kind: "pure", allowed: ["base"] },
  stream: { kind: "pure", allowed: ["base", "erasure"] },
  lsm: { kind: "pure", allowed: ["base"] },
  admission: { kind: "pure", allowed: ["base"] },
  lease: { kind: "pure", allowed: ["base"] },
  linearizability: { kind: "pure", allowed: ["base"] },
  erasure: { kind: "pure", allowed: ["base"] },
  geo: { kind: "pure", allowed: ["base"] },
  raft: { kind: "pure", allowed: ["base"] },
  objects: { kind: "pure", allowed: ["base"] },
  "azure-rest": { kind: "pure", allowed: ["base"] },
  tree: { kind: "pure", allowed: ["base", "objects"] },
  "partition-map": { kind: "pure", allowed: ["base", "objects"] },

  wire: { kind: "async", allowed: ["base"] },
  ports: { kind: "async", allowed: ["base", "wire"] },
  histories: { kind: "async", allowed: ["base", "linearizability"] },
  etcd: { kind: "async", allowed: ["base", "ports", "wire"] },
  "metadata-store": { kind: "async", allowed: ["base", "ports", "wire", "lease"] },
  "stream-client": { kind: "async", allowed: ["base", "ports", "wire", "erasure", "extent", "metadata-store"] },
  "range-partition": { kind: "async", allowed: ["base", "geo", "ports", "wire", "lsm", "stream-client"] },

  "ports-node": { kind: "adapter", allowed: ["base", "ports", "wire"] },
  "virtual-time": { kind: "adapter", allowed: ["base", "ports", "wire", "histories"] },

  "location-service": service,
  "lock-service": service,
  "stream-manager": service,
  "extent-node": service,
  "partition-manager": service,
  "partition-server": service,
  "front-end": service,

  // For programs that use a storage account, of this or another service: nothing of Stamp's but the messages of its gRPC services.
  coordination: { kind: "library", allowed: ["wire"] },
  endpoints: { kind: "library", allowed: ["wire"] },
  // For suites of others: a package of its own for npm.
  testcontainers: { kind: "library", allowed: [] },

  cluster: { kind: "hands", allowed: [...pure, ...async, "ports-node"] },
  // The drill of damage checks and rebuilds disks of stopped nodes with the code that wrote them.
  drills: { kind: "hands", allowed: [...pure, ...async, "ports-node", "cluster", "extent-node"] },
  embedded: { kind: "hands", allowed: [...pure, ...async, ...roles, "ports-node"] },
  // Runs in a browser; the command line bundles it and fills its types.
  "console-page": { kind: "hands", allowed: [] },
  // fsck reads the disks of nodes that do not run with the code that wrote them; what a role can be given is in its schema.
  cli: { kind: "hands", allowed: [...pure, ...async, ...roles, "ports-node", ...hands, "console-page"] },
  simulator: { kind: "hands", allowed: [...pure, ...async, ...roles, "virtual-time"] },
  bench: { kind: "hands", allowed: [...pure, ...async, "ports-node", ...hands] },
  tests: {
    kind: "tests",
    allowed: [...pure, ...async, ...roles, "ports-node", "virtual-time", ...hands, "cli", "bench", "coordination", "endpoints"],
  },
};

/** Adapters: inside a service only main.ts knows one. */
export const adapters: readonly string[] = ["ports-node", "virtual-time"];
