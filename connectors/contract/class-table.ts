/**
 * The table of message classes: the members that each vendor gets for each class
 * (protocol/push.md#message-classes). Xiaomi has no row, because its channels belong to the app.
 */
import type { JsonObject } from '../../shared/domain/json.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import {
  type ClassSide,
  type MessageClass,
  messageClasses,
} from '../../shared/domain/pushes/message-classes.ts';

/** Labels of one class at the vendors. Honor and Meizu only know the two sides. */
interface Row {
  /** `category` of both APIs of Huawei. */
  huawei: string;
  /** `category` of OPPO and vivo, if they have the same. */
  category: string;
  /** `category` of vivo, if it differs. */
  vivo?: string;
  /** `notify_level` of OPPO. */
  level?: 1 | 2 | 16;
  /** `interruption-level` of Apple. */
  ios: 'passive' | 'active' | 'time-sensitive';
  /** `android.priority` of FCM. */
  fcm: 'HIGH' | 'NORMAL';
  /** Lifetime in seconds on HarmonyOS. */
  ttl?: number;
}

const active = { ios: 'active', fcm: 'HIGH' } as const;
const quiet = { huawei: 'MARKETING', level: 1, ios: 'passive', fcm: 'NORMAL' } as const;

const table: Readonly<Record<MessageClass, Row>> = {
  im: { ...active, huawei: 'IM', category: 'IM', level: 2 },
  call: { ...active, huawei: 'VOIP', category: 'IM', level: 16, ios: 'time-sensitive', ttl: 60 },
  account: { ...active, huawei: 'ACCOUNT', category: 'ACCOUNT' },
  finance: { ...active, huawei: 'FINANCE', category: 'ACCOUNT' },
  order: { ...active, huawei: 'EXPRESS', category: 'ORDER' },
  express: { ...active, huawei: 'EXPRESS', category: 'ORDER' },
  todo: { ...active, huawei: 'WORK', category: 'TODO' },
  travel: { ...active, huawei: 'TRAVEL', category: 'TODO', ios: 'time-sensitive' },
  health: { ...active, huawei: 'HEALTH', category: 'TODO' },
  device: { ...active, huawei: 'DEVICE_REMINDER', category: 'DEVICE_REMINDER' },
  mail: { ...active, huawei: 'MAIL', category: 'TODO', vivo: 'IM' },
  subscription: { ...active, huawei: 'SUBSCRIPTION', category: 'SUBSCRIPTION', fcm: 'NORMAL' },
  news: { ...quiet, category: 'NEWS' },
  content: { ...quiet, category: 'CONTENT' },
  social: { ...quiet, category: 'SOCIAL', ios: 'active' },
  marketing: { ...quiet, category: 'MARKETING' },
};

type MembersOf = (row: Row, side: ClassSide) => JsonObject;

const fcm: MembersOf = (row) => ({ priority: row.fcm });

const members: Readonly<Partial<Record<ConnectorId, MembersOf>>> = {
  apns: ({ ios }) => ({ 'interruption-level': ios }),
  fcm,
  vendor_g: fcm,
  vendor_a: ({ huawei, ttl }) => ({
    category: huawei,
    ...(ttl === undefined ? {} : { pushOptions: { ttl } }),
  }),
  vendor_c: (_, side) => ({ noticeMsgType: side === 'service' ? 1 : 0 }),
  vendor_d: ({ category, level }) => ({
    category,
    ...(level === undefined ? {} : { notify_level: level }),
  }),
  vendor_e: ({ category, vivo = category }) => ({ category: vivo }),
  vendor_f: (_, side) => ({ importance: side === 'service' ? 'NORMAL' : 'LOW' }),
};

/** Returns the members of a class at a vendor, as in the vendor's object of a push. */
export const tableMembers = (name: MessageClass, connector: ConnectorId): JsonObject =>
  members[connector]?.(table[name], messageClasses[name]) ?? {};
