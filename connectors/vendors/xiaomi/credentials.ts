import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

/** Hosts by region (protocol/xiaomi.md#hosts): a device is known in its own only. */
const hosts = {
  china: 'https://api.xmpush.xiaomi.com',
  russia: 'https://ru-api.xmpush.global.xiaomi.com',
  india: 'https://idmb-api.xmpush.global.xiaomi.com',
  europe: 'https://fr-api.xmpush.global.xiaomi.com',
  global: 'https://sgp-api.xmpush.global.xiaomi.com',
} as const;

export type XiaomiRegion = keyof typeof hosts;

const regionNames = ['china', 'russia', 'india', 'europe', 'global'] as const satisfies XiaomiRegion[];

export const xiaomiCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  packageName: z
    .string('packageName must be a text')
    .regex(/^[A-Za-z][A-Za-z0-9_.]{0,127}$/, 'packageName must be an Android package name'),
  /** Where all devices of this profile are; absent: `mi` in China, `mi-intl` anywhere else. */
  region: z.enum(regionNames, `region must be one of ${regionNames.join(', ')}`).optional(),
  ...common,
  ...authEndpoint,
});

export type XiaomiCredentials = z.infer<typeof xiaomiCredentials>;

/** A region of the gateway, and whether it is known or only likely to be that of the device. */
export interface Home {
  region: XiaomiRegion;
  isSure: boolean;
}

/**
 * Where a device is asked for. The international label says that it is not in China, but not in which of the other
 * regions: without a word in the profile the largest of them is tried, and what that says of a device proves nothing.
 */
export function regionFor(
  { region }: Pick<XiaomiCredentials, 'region'>,
  vendor: string | null | undefined,
): Home {
  if (region !== undefined) return { region, isSure: true };
  return vendor?.toLowerCase() === 'mi-intl'
    ? { region: 'global', isSure: false }
    : { region: 'china', isSure: true };
}

/** Returns the base URL of a region, unless the profile sets `endpoint`. */
export const baseUrlOf = ({ endpoint }: Pick<XiaomiCredentials, 'endpoint'>, region: XiaomiRegion): string =>
  endpoint ?? hosts[region];

/**
 * Requests a second (protocol/xiaomi.md#limits): what the smallest apps have; larger ones have up to 3000, which Xiaomi grants by the number
 * of users, so that only the profile can say it.
 */
export function rateOf({ ratePerSecond: perSecond = 500 }: Pick<XiaomiCredentials, 'ratePerSecond'>): Rate {
  return { perSecond, counts: 'requests', burst: Math.ceil(perSecond / 10), rampMs: 0 };
}

/** Reports on the credentials; a secret does not say when it expires. */
export function inspectXiaomi({ ca }: XiaomiCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
