type Params = Record<string, unknown>;

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Returns a sentence of the server with the times among its values as `format` writes them. */
export function withTimes(
  sentence: string,
  params: Params,
  format: (time: string) => string,
): string {
  return timesIn(params).reduce((text, time) => text.replaceAll(time, format(time)), sentence);
}

/** Times in UTC among values; a value may be a sentence with values of its own. */
function timesIn(params: Params): string[] {
  return Object.values(params).flatMap((value) => {
    if (typeof value === 'string') return isoTime.test(value) ? [value] : [];
    const isSentence = typeof value === 'object' && value !== null && 'params' in value;
    return isSentence && isParams(value.params) ? timesIn(value.params) : [];
  });
}

const isParams = (value: unknown): value is Params => typeof value === 'object' && value !== null;

/**
 * A connector where a sentence names it; not a member of a message, such as `data: vendor_a.title`.
 */
const namedConnector = /(?<![\w.`"'/]|data: )vendor_[a-g](?![\w:`"'/]|\.\w)/g;

/**
 * Returns a sentence of the server with names of connectors, such as brands, in place of their ids.
 */
export const withNames = (sentence: string, nameOf: (connector: string) => string): string =>
  sentence.replaceAll(namedConnector, nameOf);
