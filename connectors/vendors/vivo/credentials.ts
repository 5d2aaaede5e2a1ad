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

/** The app as vivo's bodies have it: a number, where it is one (protocol/vivo.md#access-token). */
export const appIdOf = ({ appId }: Pick<VivoCredentials, 'appId'>): number | string =>
  /^[1-9]\d{0,14}$/.test(appId) ? Number(appId) : appId;

/**
 * Devices a second (protocol/vivo.md#limits): what the smallest apps have; larger ones have up to 5000, by the number of users, so that
 * only the profile can say it.
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
