/** Properties of one connector that several parts of the service use. */
interface ConnectorFacts {
  /** Neutral id, used in the database, replies, metrics and the admin API. */
  id: string;
  /** Name of the vendor, for people. */
  brand: string;
  /** Name of the vendor in Chinese. */
  brandZh: string;
  /**
   * Values of an installation's `vendor` in addition to the id, in any case. The usual spelling
   * comes first.
   */
  wireNames: readonly string[];
  /** Other names that people use for the gateway. */
  aliases: readonly string[];
  /**
   * Keys of a push's `data` in addition to the id of a vendor. An object under such a key applies
   * only to devices of this connector.
   */
  dataKeys: readonly string[];
  /** Member of the push record that counts successes (protocol/push-records.md#successes). */
  successField: string;
}

/**
 * All connectors, in the order of protocol/admin-api.md#credentials-of-a-push-profile. A new vendor
 * needs one row here.
 */
const facts = [
  {
    id: 'apns',
    brand: 'APNs',
    brandZh: 'APNs',
    wireNames: [],
    aliases: ['apple', 'ios'],
    dataKeys: [],
    successField: 'iosSuccesses',
  },
  {
    id: 'fcm',
    brand: 'FCM',
    brandZh: 'FCM',
    wireNames: [],
    aliases: ['google', 'firebase'],
    dataKeys: [],
    successField: 'fcmSuccesses',
  },
  {
    id: 'vendor_a',
    brand: 'Huawei',
    brandZh: '华为',
    wireNames: ['HMS'],
    aliases: [],
    dataKeys: ['hms'],
    successField: 'hmsSuccesses',
  },
  {
    id: 'vendor_b',
    brand: 'Xiaomi',
    brandZh: '小米',
    wireNames: ['mi', 'mi-intl'],
    aliases: [],
    dataKeys: ['mi'],
    successField: 'miSuccesses',
  },
  {
    id: 'vendor_c',
    brand: 'Meizu',
    brandZh: '魅族',
    wireNames: ['mz', 'meizu'],
    aliases: ['flyme'],
    dataKeys: ['mz', 'meizu'],
    successField: 'meizuSuccesses',
  },
  {
    id: 'vendor_d',
    brand: 'OPPO',
    brandZh: 'OPPO',
    wireNames: ['oppo'],
    aliases: ['heytap'],
    dataKeys: ['oppo'],
    successField: 'oppoSuccesses',
  },
  {
    id: 'vendor_e',
    brand: 'vivo',
    brandZh: 'vivo',
    wireNames: ['vivo'],
    aliases: [],
    dataKeys: ['vivo'],
    successField: 'vivoSuccesses',
  },
  {
    id: 'vendor_f',
    brand: 'Honor',
    brandZh: '荣耀',
    wireNames: ['honor'],
    aliases: [],
    dataKeys: ['honor'],
    successField: 'honorSuccesses',
  },
  // FCM under its second connector id.
  {
    id: 'vendor_g',
    brand: 'FCM (vendor_g)',
    brandZh: 'FCM（vendor_g）',
    wireNames: ['fcm'],
    aliases: [],
    dataKeys: ['fcm'],
    successField: 'fcmSuccesses',
  },
  {
    id: 'channel',
    brand: 'device channel',
    brandZh: '设备通道',
    wireNames: ['lc'],
    aliases: [],
    dataKeys: [],
    successField: 'lcSuccesses',
  },
  {
    id: 'webpush',
    brand: 'Web Push',
    brandZh: 'Web Push',
    wireNames: ['webpush'],
    aliases: ['web-push', 'vapid', 'unifiedpush'],
    dataKeys: ['web'],
    successField: 'webSuccesses',
  },
] as const satisfies readonly ConnectorFacts[];

export type ConnectorId = (typeof facts)[number]['id'];
export type VendorId = Extract<ConnectorId, `vendor_${string}`>;

const isVendorId = (id: ConnectorId): id is VendorId => id.startsWith('vendor_');

/** Ids of all connectors. */
export const connectorIds: readonly ConnectorId[] = facts.map(({ id }) => id);

/** Ids of the vendors, including the second id of FCM. */
export const vendorIds: readonly VendorId[] = connectorIds.filter(isVendorId);

/** Ids of the connectors that take credentials. */
export const profileConnectorIds = connectorIds.filter((id) => id !== 'channel');

/** Connectors that serve their devices with and without `hybridPush`. */
const always: readonly ConnectorId[] = ['apns', 'channel', 'webpush'];

/**
 * True if a connector serves devices only if the app's option `hybridPush` is on
 * (protocol/push.md#hybrid-push).
 */
export const needsHybridPush = (id: ConnectorId): boolean => !always.includes(id);

export function isConnectorId(value: string): value is ConnectorId {
  return (connectorIds as readonly string[]).includes(value);
}

/** Connectors by an installation's `vendor` in lower case (protocol/labels.md#vendors). */
const connectorByVendor = new Map<string, ConnectorId>(
  facts.flatMap(({ id, wireNames }) =>
    [...(isVendorId(id) ? [id] : []), ...wireNames].map(
      (name) => [name.toLowerCase(), id] as const,
    ),
  ),
);

/**
 * Returns the canonical connector of an installation's `vendor` in any spelling; undefined if
 * unknown.
 */
export function vendorConnector(name: string): ConnectorId | undefined {
  return connectorByVendor.get(name.toLowerCase());
}

/**
 * Returns the connector that a caller requests by a vendor's name. FCM has two connector ids with
 * separate profiles. `fcm` means the profile under `fcm`, if there is one (`labelsOf`).
 */
export function requestedConnector(name: string): ConnectorId | undefined {
  return name.toLowerCase() === 'fcm' ? 'fcm' : vendorConnector(name);
}

/**
 * Returns the `vendor` of installations that the connector serves. Returns null if the device type
 * decides instead.
 */
export function installationVendor(id: ConnectorId): string | null {
  if (id === 'apns') return null;
  const [wireName = id] = factsOf(id).wireNames;
  return requestedConnector(wireName) === id ? wireName : id;
}

/** Returns the value of the vendor column: the canonical id, or an unknown name in lower case. */
export function canonicalVendor(name: string): string {
  return vendorConnector(name) ?? name.toLowerCase();
}

const fcmLabels: readonly ConnectorId[] = ['fcm', 'vendor_g'];

/**
 * Returns the connector ids whose profiles can serve devices of this connector. The connector
 * itself comes first.
 */
export function labelsOf(connector: ConnectorId): readonly ConnectorId[] {
  if (!fcmLabels.includes(connector)) return [connector];
  return [connector, ...fcmLabels.filter((label) => label !== connector)];
}

const factsById = new Map<ConnectorId, ConnectorFacts>(facts.map((row) => [row.id, row]));

function factsOf(id: ConnectorId): ConnectorFacts {
  const row = factsById.get(id);
  if (!row) throw new Error(`no facts about ${id}`);
  return row;
}

/** Returns the name of the vendor. */
export const brandOf = (id: ConnectorId): string => factsOf(id).brand;

/** Returns the name of the vendor in Chinese. */
export const chineseBrandOf = (id: ConnectorId): string => factsOf(id).brandZh;

/** Returns the Chinese name of a vendor by its name. An unknown name is returned unchanged. */
export const inChinese = (brand: string): string =>
  facts.find((row) => row.brand === brand)?.brandZh ?? brand;

/** Returns the values of an installation's `vendor` in addition to the id, usual spelling first. */
export const wireNamesOf = (id: ConnectorId): readonly string[] => factsOf(id).wireNames;

/** Returns the name of a connector for people. An unknown id is returned unchanged. */
export const displayName = (connector: string): string =>
  isConnectorId(connector) ? brandOf(connector) : connector;

/**
 * Finds a connector by id, brand, alias or wire name in any case. Returns undefined if there is
 * none. `fcm` is the connector with that id.
 */
export function findConnector(name: string): ConnectorId | undefined {
  const lower = name.toLowerCase();
  const found = facts.find(
    ({ id, brand, aliases }) =>
      id === lower || brand.toLowerCase() === lower || aliases.some((alias) => alias === lower),
  );
  return found?.id ?? vendorConnector(lower);
}

/** Keys of a push's `data` whose object applies to one type of device only, with this type. */
export const dataKeyOwners = new Map<string, ConnectorId | 'ios' | 'android'>([
  ['ios', 'ios'],
  ['android', 'android'],
  ...facts.flatMap(({ id, dataKeys }) =>
    [...(isVendorId(id) ? [id] : []), ...dataKeys].map((key) => [key, id] as const),
  ),
]);

/** Returns the member of the push record that counts the connector's successes. */
export const successField = (id: ConnectorId): string => factsOf(id).successField;

/**
 * Device types whose tokens belong to APNs. SDKs store more than `ios`
 * (protocol/installations.md#device-types).
 */
export const appleDeviceTypes = ['ios', 'macos', 'tvos', 'watchos', 'visionos'] as const;

export function isAppleDeviceType(deviceType: string): boolean {
  return (appleDeviceTypes as readonly string[]).includes(deviceType);
}

/** Names of one device type: HarmonyOS 5 and newer. */
export const harmonyDeviceTypes = ['harmony', 'harmonyos', 'ohos', 'openharmony'] as const;

export function isHarmonyDeviceType(deviceType: string): boolean {
  return (harmonyDeviceTypes as readonly string[]).includes(deviceType.toLowerCase());
}

/**
 * Returns the vendor of a device. HarmonyOS implies Huawei, so its installations may have no
 * `vendor`.
 */
export const vendorOfDevice = (deviceType: string, vendor: string | null): string | null =>
  vendor ?? (isHarmonyDeviceType(deviceType) ? 'vendor_a' : null);

/** All valid device types (protocol/installations.md#device-types). */
export const deviceTypes: readonly string[] = [
  ...appleDeviceTypes,
  'android',
  ...harmonyDeviceTypes,
  'wp',
  'web',
];

/** Returns all names of a device type. */
export const storedFormsOfDeviceType = (deviceType: string): readonly string[] =>
  isHarmonyDeviceType(deviceType) ? harmonyDeviceTypes : [deviceType];

/** Returns the canonical name of a device type, for grouping and comparing. */
export const canonicalDeviceType = (deviceType: string): string =>
  storedFormsOfDeviceType(deviceType)[0] ?? deviceType;
