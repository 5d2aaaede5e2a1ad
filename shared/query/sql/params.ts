/** Values of one statement. Everything a client sends reaches SQL through here, and only through here. */
export class Params {
  readonly values: unknown[];

  /** `first` are the values of `$1`, `$2`, … that the statement itself uses. */
  constructor(first: unknown[] = []) {
    this.values = [...first];
  }

  /** Takes a value and gives its placeholder. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}
