/**
 * JSON numbers that keep all their digits. `JSON.parse` would change a 64-bit id to another id, and
 * 1e400 to a value that is not valid JSON.
 */
declare global {
  interface JSON {
    rawJSON(text: string): object;
  }
}

// Makes `JSON.stringify` write a bigint as its digits.
Object.assign(BigInt.prototype, {
  toJSON(this: bigint) {
    return JSON.rawJSON(String(this));
  },
});

/**
 * A number that cannot be stored exactly. The message begins with the path of its member and does
 * not quote the number.
 */
export class InexactNumber extends Error {
  /** Path of the number; null if the whole text is a number. */
  readonly path: string | null;

  constructor(path: string | null) {
    super(
      `${path === null ? '' : `${path}: `}this number cannot be kept exactly; send it as a text.`,
    );
    this.path = path;
  }
}

/**
 * Matches a text that may contain a number with 16 digits or an exponent. Other texts use the fast
 * parser.
 */
const longNumber = /(?:^|[:,[\s])-?\d(?:\d{15}|[\d.]*[eE])/;

/**
 * Parses JSON text of any size without changing a number. Throws a SyntaxError if the text is
 * invalid. Throws `InexactNumber` if a number would change.
 */
export function parseExactly(text: string): ReturnType<typeof JSON.parse> {
  if (!longNumber.test(text)) return JSON.parse(text);
  let lost: { path: string[]; at: unknown } | undefined;
  const value = JSON.parse(
    text,
    function (this: unknown, name: string, value, context?: { source?: string }) {
      // `JSON.parse` visits members before the object that contains them.
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
 * Returns the number with the JSON text `source`: a double, or a bigint if the double would be
 * another integer. Returns undefined if neither can represent it. A fraction below 2^53 is always a
 * double, whatever digits it was written with.
 */
export function exactNumber(source: string): number | bigint | undefined {
  const value = Number(source);
  if (!Number.isFinite(value) || (value === 0 && /^[^eE]*[1-9]/.test(source))) return undefined;
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
  const exact = integerOf(source);
  // `JSON.stringify` writes the double 1e23 as 10^23, although the double is less. So the text
  // decides.
  return exact === integerOf(String(value)) ? value : exact;
}

/** Returns the integer of a JSON number; undefined if it is a fraction. */
export function integerOf(source: string): bigint | undefined {
  const [, whole = '', decimals = '', exponent = '0'] = numberParts.exec(source) ?? [];
  const fraction = withoutLastZeros(decimals);
  const zeros = Number(exponent) - fraction.length;
  return zeros < 0 ? undefined : BigInt(whole + fraction) * 10n ** BigInt(zeros);
}

const numberParts = /^(-?\d+)(?:\.(\d+))?(?:[eE](.+))?$/;

/** A pattern would take quadratic time for a number with many zeros inside. */
function withoutLastZeros(digits: string): string {
  let { length } = digits;
  while (digits[length - 1] === '0') length -= 1;
  return digits.slice(0, length);
}
