/**
 * Commands of partition managers whose numbers are checked before the command is obeyed. A server that remembered a term or an owner epoch
 * far beyond what was given would refuse every later command of the legitimate manager.
 */
import type { Outcome } from "@stamp/base";
import { type CommandNumbers, GivenNumbers } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";

const timeoutMs = 1_000;

export class VouchedCommands {
  readonly #world: World;
  readonly #given: GivenNumbers;

  constructor(world: World, lockService: string) {
    this.#world = world;
    this.#given = new GivenNumbers(world, { lockService, timeoutMs });
  }

  /**
   * Runs the command at once, in the order of arrival. If its numbers are far above the ones that are known to be given, asks the lock
   * service first, and refuses the command if they were never given (rule commandsVouched).
   */
  run<T>(numbers: Required<CommandNumbers>, command: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    if (!this.#given.isFar(numbers) || !this.#world.rules.on("commandsVouched")) return command();
    return this.#vouched(numbers, command);
  }

  async #vouched<T>(numbers: Required<CommandNumbers>, command: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const vouched = await this.#given.vouchFor(numbers);
    if (vouched.ok) return command();
    if (vouched.failure.reason === "badRequest") {
      const { term, ownerEpoch } = this.#given.known;
      this.#world.logger.error("a command has numbers that were never given", { ...numbers, lastTerm: term, lastOwnerEpoch: ownerEpoch });
    }
    return vouched;
  }
}
