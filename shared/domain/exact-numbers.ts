/**
 * Numbers of JSON that keep their digits. `JSON.parse` alone turns an id of 64 bits into another
 * id, and 1e400 into a value that is not JSON.
 */
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

// `JSON.stringify` writes a bigint by its digits.
Object.assign(BigInt.prototype, {
  toJSON(this: bigint) {
    return JSON.rawJSON(String(this));
  },
});

/**
 * A number that cannot be kept. The message begins with the path of its member, and does not quote
 * it.
 */
export class InexactNumber extends Error {
  /** Path of the number; null for a text that is a number. */
  readonly path: string | null;

  constructor(path: string | null) {
    super(
      `${path === null ? '' : `${path}: `}this number cannot be kept exactly; send it as a text.`,
    );
    this.path = path;
  }
}

/**
 * Text that may hold a number of 16 digits or with an exponent; most text holds none, and takes the
 * fast parser.
 */
const longNumber = /(?:^|[:,[\s])-?\d(?:\d{15}|[\d.]*[eE])/;

/**
 * Parses JSON text of any size without changing a number. Throws a SyntaxError for invalid text,
 * and `InexactNumber` for a number that would become another one.
 */
export function parseExactly(text: string): ReturnType<typeof JSON.parse> {
  if (!longNumber.test(text)) return JSON.parse(text);
  let lost: { path: string[]; at: unknown } | undefined;
  const value = JSON.parse(
    text,
    function (this: unknown, name: string, value, context?: { source?: string }) {
      // Members come before the object that holds them.
      if (lost && lost.at === value) lost = { path: [name, ...lost.path], at: this };
      if (typeof value !== 'number' || context?.source === undefined) return value;
      const exact = exactNumber(context.source);
      if (exact === undefined) lost ??= { path: [name], at: this };
      return exact ?? value;
    },
  );
  if (!lost) return value;
  const path = lost.path.filter((name) => name !== '').join('.');
  throw new InexactNumber(path === '' ? null : path);
}

/**
 * Returns the number with a JSON `source`, a bigint if the double would be another integer;
 * undefined for a number that neither holds. A fraction below 2^53 is a double for every client,
 * whatever digits it was written with.
 */
export function exactNumber(source: string): number | bigint | undefined {
  const value = Number(source);
  if (!Number.isFinite(value) || (value === 0 && /^[^eE]*[1-9]/.test(source))) return undefined;
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
  const exact = integerOf(source);
  // `JSON.stringify` writes the double 1e23 as 10^23, though it is less: the text decides.
  return exact === integerOf(String(value)) ? value : exact;
}

/** Returns the integer that a JSON number is; undefined for a fraction. */
export function integerOf(source: string): bigint | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = numberParts.exec(source) ?? [];
  const zeros = Number(exponent) - fraction.length;
  return zeros < 0 ? undefined : BigInt(whole + fraction) * 10n ** BigInt(zeros);
}

const numberParts = /^(-?\d+)(?:\.(\d*?)0*)?(?:[eE](.+))?$/;
