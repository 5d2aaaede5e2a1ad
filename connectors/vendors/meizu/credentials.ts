import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

export const meizuCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  /**
   * Token that was entered in Meizu's console with the URL for receipts, so the URL is registered. Meizu may lose messages
   * with an unregistered URL (protocol/meizu.md#receipts); without this token messages have no URL.
   */
  receiptToken: secretText('receiptToken').optional(),
  ...common,
  ...authEndpoint,
});

export type MeizuCredentials = z.infer<typeof meizuCredentials>;

/**
 * Returns the rate: 200 a second unless Meizu granted more. It is unknown whether Meizu counts calls or devices
 * (protocol/meizu.md#limits); counting devices satisfies both.
 */
export function rateOf({ ratePerSecond: perSecond = 200 }: Pick<MeizuCredentials, 'ratePerSecond'>): Rate {
  return { perSecond, counts: 'recipients', burst: Math.ceil(perSecond / 10), rampMs: 0 };
}

/** Reports on the credentials; a secret does not say when it expires. */
export function inspectMeizu({ ca }: MeizuCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
