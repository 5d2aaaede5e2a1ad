/** Parsers for members of receipts; invalid values become null or are left out. */
import type { Json } from '../../shared/domain/json.ts';
import type { SenderContext } from '../contract/connector.ts';

/** Parses epoch milliseconds from a number or a text. */
export function epochMsOf(value: Json | undefined): number | null {
  const time = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isSafeInteger(time) && time > 0 ? time : null;
}

/** Returns a text that is not empty, such as an id, or null. */
export const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Splits a comma-separated list of device tokens. */
export const deviceTokensIn = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** Loopback URLs, which no gateway on the internet can reach. */
const loopback = /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/i;

/**
 * Returns the URL for receipts; undefined if the gateway could not reach it, since some gateways
 * then refuse the message. A profile with an `endpoint` may use a local gateway, such as the
 * sandbox.
 */
export function receiptUrl(
  { callbackUrl }: Pick<SenderContext, 'callbackUrl'>,
  credentials: { endpoint?: string | undefined },
): string | undefined {
  return loopback.test(callbackUrl) && credentials.endpoint === undefined ? undefined : callbackUrl;
}
