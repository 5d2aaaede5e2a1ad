/**
 * Message classes: the members that a class gives a message of a vendor, and what the vendor then
 * allows (protocol/push.md#message-classes). All default members of a class are selected here.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { type ConnectorId, dataKeyOwners } from '../../shared/domain/labels.ts';
import {
  type ClassSide,
  defaultClass,
  type MessageClass,
  messageClasses,
  type ProfileClass,
} from '../../shared/domain/pushes/message-classes.ts';
import type { PushOrder } from '../../shared/domain/pushes/push.ts';
import { tableMembers } from './class-table.ts';

/** `messageClasses` of a profile: members of the vendor by class. */
export type ProfileClasses = Readonly<Partial<Record<ProfileClass, JsonObject>>>;

/** Members that a class gives a message. The vendor's object of the push overrides them. */
export interface ClassLayer {
  /** Path of the members, for errors. */
  path: string;
  members: JsonObject;
}

/** Message class of a push at one vendor. */
export interface AppliedClass {
  name: ProfileClass;
  /** In ascending precedence: the portable table, then `messageClasses` of the profile. */
  layers: readonly ClassLayer[];
  /** The profile lists the class, which declares the vendor's right to it. */
  isDeclared: boolean;
}

/**
 * Returns the class of a push at a vendor; undefined if it has none. A transactional push without a
 * class has the class `default`, if the profile has it.
 */
export function appliedClass(
  { kind, messageClass }: Pick<PushOrder, 'kind' | 'messageClass'>,
  { connector, classes = {} }: { connector: ConnectorId; classes?: ProfileClasses | undefined },
): AppliedClass | undefined {
  const name = messageClass ?? (kind === 'transactional' ? defaultClass : undefined);
  if (name === undefined || (name === defaultClass && !classes.default)) return undefined;
  const own = classes[name];
  const portable = name === defaultClass ? {} : tableMembers(name, connector);
  return {
    name,
    layers: [
      ...(Object.keys(portable).length > 0 ? [{ path: 'class', members: portable }] : []),
      ...(own ? [{ path: `messageClasses.${name}`, members: own }] : []),
    ],
    isDeclared: own !== undefined,
  };
}

/** What a vendor allows by message class. */
interface VendorRules {
  /** Member that contains the vendor's own label, and the labels of service messages. */
  label?: { member: string; service: readonly (string | number)[] };
  /** Messages per device and day; null if the vendor publishes no limit. */
  limits: { service: number | null; marketing: number | null; none: number | null };
  /** The vendor grants service labels on application. Profiles declare the right. */
  hasRights?: true;
  /** Members that messages of a class need. */
  needed?: Readonly<Record<ClassSide, readonly string[]>>;
}

const unlimited: VendorRules = { limits: { service: null, marketing: null, none: null } };
const twoADay = { service: null, marketing: 2, none: 2 };
const serviceCategories = ['IM', 'ACCOUNT', 'DEVICE_REMINDER', 'ORDER', 'TODO', 'SUBSCRIPTION'];

/** Limits of apps without a licence for news (protocol/gateways.md#day-quotas). */
const vendorRules: Readonly<Partial<Record<ConnectorId, VendorRules>>> = {
  vendor_a: {
    label: {
      member: 'category',
      service: [
        ...['IM', 'VOIP', 'MISS_CALL', 'SUBSCRIPTION', 'TRAVEL', 'HEALTH', 'WORK', 'ACCOUNT'],
        ...['EXPRESS', 'FINANCE', 'DEVICE_REMINDER', 'MAIL', 'PLAY_VOICE', 'CUSTOMER_SERVICE'],
      ],
    },
    limits: twoADay,
    hasRights: true,
  },
  vendor_b: {
    limits: { service: null, marketing: 5, none: 1 },
    needed: { service: ['channel_id', 'template_id', 'template_param'], marketing: ['channel_id'] },
  },
  vendor_c: {
    label: { member: 'noticeMsgType', service: [1] },
    limits: { service: null, marketing: 3, none: 3 },
  },
  vendor_d: {
    label: { member: 'category', service: serviceCategories },
    limits: twoADay,
    hasRights: true,
    needed: { service: ['private_msg_template_id'], marketing: [] },
  },
  vendor_e: {
    label: { member: 'category', service: serviceCategories },
    limits: twoADay,
    hasRights: true,
  },
  vendor_f: {
    label: { member: 'importance', service: ['NORMAL'] },
    limits: twoADay,
    hasRights: true,
  },
};

/**
 * Returns how many messages without a class a device shows per day; null if the vendor publishes no
 * limit.
 */
export const limitWithoutClass = (connector: ConnectorId): number | null =>
  (vendorRules[connector] ?? unlimited).limits.none;

/** What a message class means at a vendor, for the dry run. */
export interface ClassEffect {
  /** Null if the push has no class. */
  name: ProfileClass | null;
  /** Messages that a device shows per day; null if the vendor publishes no limit. */
  dailyLimit: number | null;
  /**
   * What the vendor needs and the push and the profile lack: names of members, `right` if the
   * profile does not declare the class, or `class` if a transactional push has no class.
   */
  missing: string[];
}

/** The part of a message that decides its class. */
interface ClassedMessage {
  data: JsonObject;
  messageClass?: AppliedClass;
}

/** Returns what the class of a message means at a vendor. */
export function classEffect(
  connector: ConnectorId,
  message: ClassedMessage,
  { isTransactional }: { isTransactional: boolean },
): ClassEffect {
  const rules = vendorRules[connector] ?? unlimited;
  const { messageClass } = message;
  const side = sideOf(connector, message);
  return {
    name: messageClass?.name ?? null,
    dailyLimit: rules.limits[side ?? 'none'],
    missing:
      messageClass === undefined
        ? isTransactional && side === null && rules !== unlimited
          ? ['class']
          : []
        : missingOf(connector, message, { rules, side, isDeclared: messageClass.isDeclared }),
  };
}

function missingOf(
  connector: ConnectorId,
  message: ClassedMessage,
  { rules, side, isDeclared }: { rules: VendorRules; side: ClassSide | null; isDeclared: boolean },
): string[] {
  const needed = side === null ? [] : (rules.needed?.[side] ?? []);
  return [
    ...(rules.hasRights && side === 'service' && !isDeclared ? ['right'] : []),
    ...needed.filter((member) => effectiveMember(connector, message, member) === undefined),
  ];
}

/**
 * Returns the side that the vendor sees: by the label of the message, which the push may set
 * itself, or else by the class. Returns null if the message has neither.
 */
export function sideOf(connector: ConnectorId, message: ClassedMessage): ClassSide | null {
  const { label } = vendorRules[connector] ?? unlimited;
  const value = label && effectiveMember(connector, message, label.member);
  if (label && value !== undefined) {
    const text = String(value).toUpperCase();
    return label.service.some((one) => String(one) === text) ? 'service' : 'marketing';
  }
  const name = message.messageClass?.name;
  if (name === undefined) return null;
  return name === defaultClass ? 'service' : messageClasses[name as MessageClass];
}

/**
 * Returns a member of the message as the vendor gets it: from the vendor's object of the push, or
 * from the class. Returns undefined if neither has it.
 */
export function effectiveMember(
  connector: ConnectorId,
  { data, messageClass }: ClassedMessage,
  member: string,
): Json | undefined {
  const owner = connector === 'fcm' ? 'vendor_g' : connector;
  const own = Object.entries(data).flatMap(([name, value]) =>
    dataKeyOwners.get(name) === owner ? [value] : [],
  );
  const layers = messageClass?.layers.map(({ members }) => members) ?? [];
  for (const object of [...own, ...layers.toReversed()]) {
    const found = memberIn(object, member, 0);
    if (found !== undefined) return found === null ? undefined : found;
  }
  return undefined;
}

/** Depth to which objects of a vendor are searched. */
const maxDepth = 4;

/** Finds a member at any place of a vendor's object, in either spelling. */
function memberIn(object: Json | undefined, member: string, depth: number): Json | undefined {
  if (!isJsonObject(object) || depth > maxDepth) return undefined;
  for (const [name, value] of Object.entries(object))
    if (plainName(name) === plainName(member)) return value;
  for (const value of Object.values(object)) {
    const found = memberIn(value, member, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

const plainName = (name: string): string =>
  name
    .replace(/^extra\./, '')
    .replaceAll('_', '')
    .toLowerCase();
