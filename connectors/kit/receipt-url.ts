import type { SenderContext } from '../contract/connector.ts';

/** Loopback URLs, which no gateway on the internet can reach. */
const loopback = /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/i;

/**
 * Returns the URL for receipts; undefined if the gateway could not reach it, since some gateways then refuse the message. A
 * profile with an `endpoint` may use a local gateway, such as the sandbox.
 */
export function receiptUrl(
  { callbackUrl }: Pick<SenderContext, 'callbackUrl'>,
  credentials: { endpoint?: string | undefined },
): string | undefined {
  return loopback.test(callbackUrl) && credentials.endpoint === undefined ? undefined : callbackUrl;
}
