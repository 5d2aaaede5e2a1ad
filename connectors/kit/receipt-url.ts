import type { SenderContext } from '../contract/connector.ts';

/** Addresses of this machine only: no gateway on the internet could send a receipt there. */
const loopback = /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/i;

/**
 * The address for receipts to hand to the gateway; undefined where a real gateway could not reach it (then some
 * refuse the whole message). A profile with an `endpoint` of its own speaks to something near, such as a sandbox.
 */
export function receiptUrl(
  { callbackUrl }: Pick<SenderContext, 'callbackUrl'>,
  credentials: { endpoint?: string | undefined },
): string | undefined {
  return loopback.test(callbackUrl) && credentials.endpoint === undefined ? undefined : callbackUrl;
}
