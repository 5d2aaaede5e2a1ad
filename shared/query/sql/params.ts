/** Parameters of one statement: the only way for a client's values into SQL. */
export class Params {
  readonly values: unknown[];

  /** `first` holds the values of `$1`, `$2`, … that the statement itself uses. */
  constructor(first: unknown[] = []) {
    this.values = [...first];
  }

  /** Adds a value and returns its placeholder. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}
