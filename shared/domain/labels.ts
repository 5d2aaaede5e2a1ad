/** Properties of one connector that several parts of the service use. */
interface ConnectorFacts {
  /** Neutral id: stored in the database and used in replies, metrics and the admin API. */
  id: string;
  /** The vendor's name, for people. */
  brand: string;
  /** The same in Chinese. */
  brandZh: string;
  /** Values of an installation's `vendor` beside the id, in any case; the usual spelling first. */
  wireNames: readonly string[];
  /** Other names that people use for the gateway. */
  aliases: readonly string[];
  /**
   * Keys of push `data`, beside the id of a vendor, whose object applies to this connector's
   * devices only.
   */
  dataKeys: readonly string[];
  /** Member of the push record that counts successes (protocol/push-records.md#successes). */
  successField: string;
}

/**
 * All connectors, in the order of protocol/admin-api.md#credentials-of-a-push-profile. A new vendor
 * adds one row.
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
  // Second label of FCM.
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
    brandZh: '自有通道',
    wireNames: ['lc'],
    aliases: [],
    dataKeys: [],
    successField: 'lcSuccesses',
  },
] as const satisfies readonly ConnectorFacts[];

export type ConnectorId = (typeof facts)[number]['id'];
export type VendorId = Extract<ConnectorId, `vendor_${string}`>;

const isVendorId = (id: ConnectorId): id is VendorId => id.startsWith('vendor_');

/** Ids of all connectors. */
export const connectorIds: readonly ConnectorId[] = facts.map(({ id }) => id);

/** Ids of the device vendors' channels, FCM's second label among them. */
export const vendorIds: readonly VendorId[] = connectorIds.filter(isVendorId);

/** Ids of the connectors that take credentials. */
export const profileConnectorIds = connectorIds.filter((id) => id !== 'channel');

export function isConnectorId(value: string): value is ConnectorId {
  return (connectorIds as readonly string[]).includes(value);
}

/** An installation's `vendor` in lower case → its connector (protocol/labels.md#vendors). */
const connectorByVendor = new Map<string, ConnectorId>(
  facts.flatMap(({ id, wireNames }) =>
    [...(isVendorId(id) ? [id] : []), ...wireNames].map(
      (name) => [name.toLowerCase(), id] as const,
    ),
  ),
);

/**
 * Returns the canonical connector of an installation's `vendor`, in any spelling; undefined when
 * unknown.
 */
export function vendorConnector(name: string): ConnectorId | undefined {
  return connectorByVendor.get(name.toLowerCase());
}

/**
 * Returns the connector that a vendor's name asks for. FCM has two labels with profiles of their
 * own: `fcm` means the profile under `fcm`, if there is one (`labelsOf`).
 */
export function requestedConnector(name: string): ConnectorId | undefined {
  return name.toLowerCase() === 'fcm' ? 'fcm' : vendorConnector(name);
}

/**
 * Returns the `vendor` of an installation that the connector serves; null where the device type
 * decides.
 */
export function installationVendor(id: ConnectorId): string | null {
  if (id === 'apns') return null;
  const [wireName = id] = factsOf(id).wireNames;
  return requestedConnector(wireName) === id ? wireName : id;
}

/**
 * Returns the value stored in the vendor column: the canonical id, or an unknown name in lower
 * case.
 */
export function canonicalVendor(name: string): string {
  return vendorConnector(name) ?? name.toLowerCase();
}

const fcmLabels: readonly ConnectorId[] = ['fcm', 'vendor_g'];

/** Returns the labels under which a profile serves devices of this connector, its own first. */
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

/** Returns the vendor's own name. */
export const brandOf = (id: ConnectorId): string => factsOf(id).brand;

/** Returns the vendor's name in Chinese. */
export const chineseBrandOf = (id: ConnectorId): string => factsOf(id).brandZh;

/** Returns the names of an installation's `vendor` beside the id, the usual one first. */
export const wireNamesOf = (id: ConnectorId): readonly string[] => factsOf(id).wireNames;

/** Returns the name of a connector for people: its brand, or an unknown id unchanged. */
export const displayName = (connector: string): string =>
  isConnectorId(connector) ? brandOf(connector) : connector;

/**
 * Finds a connector by id, brand, alias or wire name, in any case. Returns undefined when unknown.
 * `fcm` is the connector of that id.
 */
export function findConnector(name: string): ConnectorId | undefined {
  const lower = name.toLowerCase();
  const found = facts.find(
    ({ id, brand, aliases }) =>
      id === lower || brand.toLowerCase() === lower || aliases.some((alias) => alias === lower),
  );
  return found?.id ?? vendorConnector(lower);
}

/** Keys of push `data` whose object applies to devices of one kind only → that kind. */
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
 * Device types whose tokens belong to APNs (protocol/installations.md#device-types: SDKs store more
 * than `ios`).
 */
export const appleDeviceTypes = ['ios', 'macos', 'tvos', 'watchos', 'visionos'] as const;

export function isAppleDeviceType(deviceType: string): boolean {
  return (appleDeviceTypes as readonly string[]).includes(deviceType);
}

/** Names of the device type of HarmonyOS 5 and newer: one type. */
export const harmonyDeviceTypes = ['harmony', 'harmonyos', 'ohos', 'openharmony'] as const;

export function isHarmonyDeviceType(deviceType: string): boolean {
  return (harmonyDeviceTypes as readonly string[]).includes(deviceType.toLowerCase());
}

/**
 * Returns the vendor of a device: HarmonyOS has one, so that its installations need not name it.
 */
export const vendorOfDevice = (deviceType: string, vendor: string | null): string | null =>
  vendor ?? (isHarmonyDeviceType(deviceType) ? 'vendor_a' : null);

/** All device types that an installation may have (protocol/installations.md#device-types). */
export const deviceTypes: readonly string[] = [
  ...appleDeviceTypes,
  'android',
  ...harmonyDeviceTypes,
  'wp',
  'web',
];

/** Returns all names of a device type. */
export const namesOfDeviceType = (deviceType: string): readonly string[] =>
  isHarmonyDeviceType(deviceType) ? harmonyDeviceTypes : [deviceType];

/** Returns the one name by which devices of a type are grouped and compared. */
export const canonicalDeviceType = (deviceType: string): string =>
  namesOfDeviceType(deviceType)[0] ?? deviceType;
