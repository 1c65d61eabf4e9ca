/** Cooperative balancing of private endpoints: see the README of this package. */
export { Availability, type AvailabilityAnswer, type AvailabilityOptions, type Criterion } from "./availability.ts";
export { type BalancerOptions, EndpointBalancer, type NodeCounters, NoNodeAvailableError, type Resolution } from "./balancer.ts";
export { availabilityService, GrpcAvailability } from "./grpc/availability.ts";
export { cooperativePolicy, cooperativePolicyName, type PolicyOptions, registerCooperativePolicy } from "./grpc/policy.ts";
export { connections, cpu, eventLoopDelay, queueDepth, usedDisk } from "./probes.ts";
export { type BalancerClock, UsageError } from "./time.ts";
