import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

export const meizuCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  /**
   * The token that Meizu's console was given beside the address for receipts. It says that the address is registered
   * there: Meizu may lose messages that name another (protocol/meizu.md#receipts), so that without it none is named.
   */
  receiptToken: secretText('receiptToken').optional(),
  ...common,
  ...authEndpoint,
});

export type MeizuCredentials = z.infer<typeof meizuCredentials>;

/**
 * 200 a second unless Meizu granted more; nobody says whether it counts calls or devices (protocol/meizu.md#limits). Devices, then: that
 * keeps either.
 */
export function rateOf({ ratePerSecond: perSecond = 200 }: Pick<MeizuCredentials, 'ratePerSecond'>): Rate {
  return { perSecond, counts: 'recipients', burst: Math.ceil(perSecond / 10), rampMs: 0 };
}

/** Reports on the credentials; a secret does not say when it expires. */
export function inspectMeizu({ ca }: MeizuCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
