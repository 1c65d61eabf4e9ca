/** A reason not to start that a user can act on. */
export class StartError extends Error {}

/** An error that a user must put right in the command line, the environment or a file. */
export class ConfigError extends StartError {}
