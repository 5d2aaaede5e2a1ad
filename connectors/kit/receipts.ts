/** Parsers for the members of receipts. */
import type { Json } from '../../shared/domain/json.ts';
import type { SenderContext } from '../contract/connector.ts';

/** Parses epoch milliseconds from a number or a string; null if invalid. */
export function epochMsOf(value: Json | undefined): number | null {
  const time = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isSafeInteger(time) && time > 0 ? time : null;
}

/** Returns a string that is not empty, such as an id; null for other values. */
export const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Splits a comma-separated list of device tokens. */
export const deviceTokensIn = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** URLs of this machine, which a gateway cannot reach. */
const loopback = /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/i;

/**
 * Returns the URL for receipts. Returns undefined if the gateway could not reach it, because some
 * gateways then refuse the message. If the profile has an `endpoint`, the gateway may be local,
 * such as the sandbox.
 */
export function receiptUrl(
  { callbackUrl }: Pick<SenderContext, 'callbackUrl'>,
  credentials: { endpoint?: string | undefined },
): string | undefined {
  return loopback.test(callbackUrl) && credentials.endpoint === undefined ? undefined : callbackUrl;
}
