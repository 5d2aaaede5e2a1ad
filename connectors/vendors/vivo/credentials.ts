import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

export const vivoCredentials = z.strictObject({
  appId: secretText('appId'),
  appKey: secretText('appKey'),
  appSecret: secretText('appSecret'),
  ...common,
  ...authEndpoint,
});

export type VivoCredentials = z.infer<typeof vivoCredentials>;

/** Returns the app id as vivo's bodies have it, a number if possible (protocol/vivo.md#access-token). */
export const appIdOf = ({ appId }: Pick<VivoCredentials, 'appId'>): number | string =>
  /^[1-9]\d{0,14}$/.test(appId) ? Number(appId) : appId;

/**
 * Returns the rate in devices per second (protocol/vivo.md#limits): by default that of the smallest apps. Larger ones have
 * up to 5000, by users, which the profile sets.
 */
export const rateOf = ({
  ratePerSecond: perSecond = 3000,
}: Pick<VivoCredentials, 'ratePerSecond'>): Rate => ({
  perSecond,
  counts: 'recipients',
  burst: 0,
  rampMs: 0,
});

/** Reports on the credentials; secrets do not say when they expire. */
export function inspectVivo({ ca }: VivoCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
