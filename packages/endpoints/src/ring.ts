/**
 * Chooses the node that a caller uses, as a machine without clock or I/O (article "Load balancing private endpoints on worker roles", cooperative
 * management): nodes stand in a ring; a caller begins at its own place and goes round until a node says that it is available.
 *
 *   caller 0 ─▶ [0] [1] [2] ◀─ caller 2         places: ordinal modulo number of nodes
 *
 * Invariants:
 * - The chosen node is used until its time is over, it is disabled or removed, or a call to it failed; then it is asked again.
 * - A node that is disabled is neither asked nor chosen.
 * - While another node than the preferred one is chosen, each new question also goes to the preferred one, so that the caller returns.
 */

interface Member<N> {
  readonly node: N;
  disabledUntilMs: number;
}

export class Ring<N extends string> {
  readonly #ordinal: number;
  #members: Member<N>[];
  #chosen: { readonly member: Member<N>; readonly untilMs: number } | undefined;

  constructor(nodes: readonly N[], ordinal: number) {
    this.#ordinal = ordinal;
    this.#members = [...new Set(nodes)].map((node) => ({ node, disabledUntilMs: Number.NEGATIVE_INFINITY }));
  }

  get nodes(): readonly N[] {
    return this.#members.map(({ node }) => node);
  }

  /** The node at this caller's own place; undefined if there are no nodes. */
  get preferred(): N | undefined {
    return this.#members[this.#home()]?.node;
  }

  /** Returns the chosen node if it may still be used; undefined if nodes must be asked. */
  current(nowMs: number): N | undefined {
    const chosen = this.#chosen;
    if (chosen === undefined || nowMs >= chosen.untilMs || nowMs < chosen.member.disabledUntilMs) return undefined;
    return chosen.member.node;
  }

  /** Node that was chosen last, also after its time. */
  get last(): N | undefined {
    return this.#chosen?.member.node;
  }

  /** Returns the nodes to ask, in order, without disabled ones: from this caller's place once round. */
  order(nowMs: number): N[] {
    const home = this.#home();
    const from = [...this.#members.slice(home), ...this.#members.slice(0, home)];
    return from.filter(({ disabledUntilMs }) => nowMs >= disabledUntilMs).map(({ node }) => node);
  }

  /** Chooses a node that said yes; false: the ring has it no more, or it is disabled. */
  choose(node: N, nowMs: number, untilMs: number): boolean {
    const member = this.#find(node);
    if (member === undefined || nowMs < member.disabledUntilMs) return false;
    this.#chosen = { member, untilMs };
    return true;
  }

  /** Avoids a node because a call to it failed. Does not shorten a time for which it is disabled. */
  rest(node: N, untilMs: number): void {
    const member = this.#find(node);
    if (member !== undefined) member.disabledUntilMs = Math.max(member.disabledUntilMs, untilMs);
  }

  /** Disables a node until a time; false: the ring does not know the node. */
  disable(node: N, untilMs: number): boolean {
    const member = this.#find(node);
    if (member === undefined) return false;
    member.disabledUntilMs = untilMs;
    return true;
  }

  /** Replaces the nodes. What is known of those that stay is kept. */
  set(nodes: readonly N[]): void {
    const known = new Map(this.#members.map((member) => [member.node, member]));
    this.#members = [...new Set(nodes)].map((node) => known.get(node) ?? { node, disabledUntilMs: Number.NEGATIVE_INFINITY });
    if (this.#chosen !== undefined && !this.#members.includes(this.#chosen.member)) this.#chosen = undefined;
  }

  #home(): number {
    return this.#members.length === 0 ? 0 : this.#ordinal % this.#members.length;
  }

  #find(node: N): Member<N> | undefined {
    return this.#members.find((member) => member.node === node);
  }
}
