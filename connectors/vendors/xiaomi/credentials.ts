import { z } from 'zod';
import type { CredentialReport, Rate } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, requiredText, secretText } from '../../contract/credentials.ts';

/** Hosts by region (protocol/xiaomi.md#hosts): only the host of its region knows a device. */
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
  packageName: requiredText('packageName').regex(
    /^[A-Za-z][A-Za-z0-9_.]{0,127}$/,
    'packageName must be an Android package name',
  ),
  /** Region of all devices of this profile; absent: `mi` in China, `mi-intl` elsewhere. */
  region: z.enum(regionNames, `region must be one of ${regionNames.join(', ')}`).optional(),
  ...common,
  ...authEndpoint,
});

export type XiaomiCredentials = z.infer<typeof xiaomiCredentials>;

/** Region of a device, and whether it is certain or only likely. */
export interface DeviceRegion {
  region: XiaomiRegion;
  isRegionCertain: boolean;
}

/**
 * Returns the region of a device. `mi-intl` means outside China: without `region` in the profile the largest region is
 * tried, and its responses about a device prove nothing.
 */
export function regionFor(
  { region }: Pick<XiaomiCredentials, 'region'>,
  vendor: string | null | undefined,
): DeviceRegion {
  if (region !== undefined) return { region, isRegionCertain: true };
  return vendor?.toLowerCase() === 'mi-intl'
    ? { region: 'global', isRegionCertain: false }
    : { region: 'china', isRegionCertain: true };
}

/** Returns the base URL of a region, unless the profile sets `endpoint`. */
export const baseUrlOf = ({ endpoint }: Pick<XiaomiCredentials, 'endpoint'>, region: XiaomiRegion): string =>
  endpoint ?? hosts[region];

/**
 * Returns the rate in requests per second (protocol/xiaomi.md#limits): by default that of the smallest apps. Larger ones
 * have up to 3000, by users, which the profile sets.
 */
export function rateOf({ ratePerSecond: perSecond = 500 }: Pick<XiaomiCredentials, 'ratePerSecond'>): Rate {
  return { perSecond, counts: 'requests', burst: Math.ceil(perSecond / 10), rampMs: 0 };
}

/** Reports on the credentials; a secret does not say when it expires. */
export function inspectXiaomi({ ca }: XiaomiCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
