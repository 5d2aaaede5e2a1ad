import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

/** Hosts by region (protocol/oppo.md#hosts). Older accounts may know another one: the profile's `endpoint` tells. */
const hosts = {
  china: 'https://api-push-cn.heytapmobi.com',
  abroad: 'https://api-intl.push.oppomobile.com',
} as const;

export type OppoRegion = keyof typeof hosts;

export const oppoCredentials = z.strictObject({
  appKey: secretText('appKey'),
  /** Not the app's secret: OPPO gives out both. */
  masterSecret: secretText('masterSecret'),
  ...common,
  ...authEndpoint,
});

export type OppoCredentials = z.infer<typeof oppoCredentials>;

/** Where a device is served, which its registration id tells (protocol/oppo.md#hosts): `CN` is the part before the last, or there is one part only. */
export function regionOf(registrationId: string): OppoRegion {
  const parts = registrationId.split('_');
  if (parts.length === 1) return 'china';
  return parts.length <= 3 && parts.at(-2) === 'CN' ? 'china' : 'abroad';
}

/** Returns the base URL of a region, unless the profile sets `endpoint`. */
export const baseUrlOf = ({ endpoint }: Pick<OppoCredentials, 'endpoint'>, region: OppoRegion): string =>
  endpoint ?? hosts[region];

/**
 * Devices a second over all of OPPO's calls (protocol/oppo.md#limits): what the smallest apps have; larger ones have up to 30000, by the
 * number of users and the category, so that only the profile can say it.
 */
export const rateOf = ({
  ratePerSecond: perSecond = 5000,
}: Pick<OppoCredentials, 'ratePerSecond'>): Rate => ({
  perSecond,
  counts: 'recipients',
  burst: 0,
  rampMs: 0,
});

/** Reports on the credentials; a secret does not say when it expires. */
export function inspectOppo({ ca }: OppoCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
