/** The device makers' channels, FCM's second label among them. */
export const vendorIds = [
  'vendor_a',
  'vendor_b',
  'vendor_c',
  'vendor_d',
  'vendor_e',
  'vendor_f',
  'vendor_g',
] as const;

/**
 * Names of connectors and vendors: neutral ones are canonical inside, wire names are accepted
 * everywhere (protocol/labels.md#vendors).
 */
export const connectorIds = ['apns', 'fcm', ...vendorIds, 'channel'] as const;

export type ConnectorId = (typeof connectorIds)[number];

export function isConnectorId(value: string): value is ConnectorId {
  return (connectorIds as readonly string[]).includes(value);
}

/** Connectors that take credentials, in the order of protocol/admin-api.md#credentials-of-a-push-profile. */
export const profileConnectorIds = connectorIds.filter((id) => id !== 'channel');

/** An installation's `vendor` in lower case → its canonical label. `lc` means our own channel. */
const vendorByName = new Map<string, ConnectorId>([
  ['vendor_a', 'vendor_a'],
  ['hms', 'vendor_a'],
  ['vendor_b', 'vendor_b'],
  ['mi', 'vendor_b'],
  ['mi-intl', 'vendor_b'],
  ['vendor_c', 'vendor_c'],
  ['mz', 'vendor_c'],
  ['meizu', 'vendor_c'],
  ['vendor_d', 'vendor_d'],
  ['oppo', 'vendor_d'],
  ['vendor_e', 'vendor_e'],
  ['vivo', 'vendor_e'],
  ['vendor_f', 'vendor_f'],
  ['honor', 'vendor_f'],
  ['vendor_g', 'vendor_g'],
  ['fcm', 'vendor_g'],
  ['lc', 'channel'],
]);

/** Canonical connector of an installation's `vendor`, whatever its spelling; undefined when unknown. */
export function vendorConnector(name: string): ConnectorId | undefined {
  return vendorByName.get(name.toLowerCase());
}

/**
 * The connector that a vendor's name asks for. FCM has two labels, and profiles under each: who says `fcm` means the
 * one of that name, where there is one (`labelsOf`).
 */
export function askedConnector(name: string): ConnectorId | undefined {
  return name.toLowerCase() === 'fcm' ? 'fcm' : vendorConnector(name);
}

const fcmLabels: readonly ConnectorId[] = ['fcm', 'vendor_g'];

/** Labels under which a profile serves devices of this connector, its own first. */
export function labelsOf(connector: ConnectorId): readonly ConnectorId[] {
  if (!fcmLabels.includes(connector)) return [connector];
  return [connector, ...fcmLabels.filter((label) => label !== connector)];
}

/** The vendors' own names, for people; programs get the ids. */
export const brandOf: Record<ConnectorId, string> = {
  apns: 'APNs',
  fcm: 'FCM',
  vendor_a: 'Huawei',
  vendor_b: 'Xiaomi',
  vendor_c: 'Meizu',
  vendor_d: 'OPPO',
  vendor_e: 'vivo',
  vendor_f: 'Honor',
  vendor_g: 'FCM (vendor_g)',
  channel: 'own channel',
};

/** Names a connector in a sentence or table: its brand; an unknown id stays as it is. */
export const displayName = (connector: string): string =>
  isConnectorId(connector) ? brandOf[connector] : connector;

/** Names that people use for a gateway, beside its id, its wire names and its brand. */
const otherNames = new Map<string, ConnectorId>([
  ['apple', 'apns'],
  ['ios', 'apns'],
  ['google', 'fcm'],
  ['firebase', 'fcm'],
  ['flyme', 'vendor_c'],
  ['heytap', 'vendor_d'],
]);

/**
 * The connector that a person means: its id, a wire name, a brand or a common name of the vendor, in any case. `fcm` is
 * the connector of that name. Undefined when unknown.
 */
export function connectorNamed(name: string): ConnectorId | undefined {
  const lower = name.toLowerCase();
  return (
    connectorIds.find((id) => id === lower || brandOf[id].toLowerCase() === lower) ??
    otherNames.get(lower) ??
    vendorConnector(lower)
  );
}

/** The value stored in the vendor column: the canonical label, or the unknown name in lower case. */
export function canonicalVendor(name: string): string {
  return vendorConnector(name) ?? name.toLowerCase();
}

/** Keys inside push `data` whose object applies to devices of one kind only → that kind. */
export const dataKeyOwners = new Map<string, ConnectorId | 'ios' | 'android'>([
  ['ios', 'ios'],
  ['android', 'android'],
  ['hms', 'vendor_a'],
  ['mi', 'vendor_b'],
  ['mz', 'vendor_c'],
  ['meizu', 'vendor_c'],
  ['oppo', 'vendor_d'],
  ['vivo', 'vendor_e'],
  ['honor', 'vendor_f'],
  ['fcm', 'vendor_g'],
  ...vendorIds.map((id) => [id, id] as const),
]);

/** Name of the success counter a connector adds to on the push record (protocol/push-records.md#successes). */
export const successField: Record<ConnectorId, string> = {
  apns: 'iosSuccesses',
  fcm: 'fcmSuccesses',
  vendor_a: 'hmsSuccesses',
  vendor_b: 'miSuccesses',
  vendor_c: 'meizuSuccesses',
  vendor_d: 'oppoSuccesses',
  vendor_e: 'vivoSuccesses',
  vendor_f: 'honorSuccesses',
  vendor_g: 'fcmSuccesses',
  channel: 'lcSuccesses',
};

/** Device types whose tokens belong to APNs (protocol/installations.md#device-types: SDKs store more than `ios`). */
export const appleDeviceTypes = ['ios', 'macos', 'tvos', 'watchos', 'visionos'] as const;

export function isAppleDeviceType(deviceType: string): boolean {
  return (appleDeviceTypes as readonly string[]).includes(deviceType);
}
