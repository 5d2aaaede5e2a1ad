import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

/** Hosts by region (protocol/oppo.md#hosts). Profiles of older accounts set another one as `endpoint`. */
const hosts = {
  china: 'https://api-push-cn.heytapmobi.com',
  abroad: 'https://api-intl.push.oppomobile.com',
} as const;

export type OppoRegion = keyof typeof hosts;

export const oppoCredentials = z.strictObject({
  appKey: secretText('appKey'),
  /** OPPO also issues an app secret, which is a different one. */
  masterSecret: secretText('masterSecret'),
  ...common,
  ...authEndpoint,
});

export type OppoCredentials = z.infer<typeof oppoCredentials>;

/** Beginning of the usual ids of China. */
const chinese = 'CN_';

/**
 * Returns the region of a registration id (protocol/oppo.md#hosts): China if its part before the last is `CN` or it has
 * one part.
 */
export function regionOf(registrationId: string): OppoRegion {
  if (registrationId.startsWith(chinese) && !registrationId.includes('_', chinese.length)) return 'china';
  const parts = registrationId.split('_');
  if (parts.length === 1) return 'china';
  return parts.length <= 3 && parts.at(-2) === 'CN' ? 'china' : 'abroad';
}

/** Returns the base URL of a region, unless the profile sets `endpoint`. */
export const baseUrlOf = ({ endpoint }: Pick<OppoCredentials, 'endpoint'>, region: OppoRegion): string =>
  endpoint ?? hosts[region];

/**
 * Returns the rate in devices per second over all calls (protocol/oppo.md#limits): by default that of the smallest apps.
 * Larger ones have up to 30000, by users and category, which the profile sets.
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
