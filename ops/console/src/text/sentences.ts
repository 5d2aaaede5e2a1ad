type Params = Record<string, unknown>;

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Returns a sentence of the server in which `format` formats the times. */
export function withTimes(
  sentence: string,
  params: Params,
  format: (time: string) => string,
): string {
  return timesIn(params).reduce((text, time) => text.replaceAll(time, format(time)), sentence);
}

/** Returns the UTC times among the values. A value may be a sentence with its own values. */
function timesIn(params: Params): string[] {
  return Object.values(params).flatMap((value) => {
    if (typeof value === 'string') return isoTime.test(value) ? [value] : [];
    const isSentence = typeof value === 'object' && value !== null && 'params' in value;
    return isSentence && isParams(value.params) ? timesIn(value.params) : [];
  });
}

const isParams = (value: unknown): value is Params => typeof value === 'object' && value !== null;

/**
 * Matches a connector id in a sentence. Does not match a member of a message, such as `data:
 * vendor_a.title`.
 */
const namedConnector = /(?<![\w.`"'/]|data: )vendor_[a-g](?![\w:`"'/]|\.\w)/g;

/** Replaces connector ids in a sentence of the server with names, such as brands. */
export const withNames = (sentence: string, nameOf: (connector: string) => string): string =>
  sentence.replaceAll(namedConnector, nameOf);
