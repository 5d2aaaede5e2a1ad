/** Parameters of one statement. Clients' values must enter SQL only through them. */
export class Params {
  readonly values: unknown[];

  /** `first` contains the values of `$1`, `$2`, … that the statement itself uses. */
  constructor(first: unknown[] = []) {
    this.values = [...first];
  }

  /** Adds a value and returns its placeholder. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}
