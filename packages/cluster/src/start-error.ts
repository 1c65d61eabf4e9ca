/** A reason not to start that a user can act on. */
export class StartError extends Error {}
