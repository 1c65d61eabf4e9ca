/** Leadership in one term of the log: from when everything before the term is applied. */
import { Leadership } from "@stamp/ports";

export class Leading extends Leadership {
  readonly term: number;

  constructor(term: number) {
    super();
    this.term = term;
  }
}
