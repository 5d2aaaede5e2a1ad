import {
  ExactNumber,
  isRecord,
  type JsonRecord,
  type JsonValue,
  parseJsonText,
  valueAt,
  withValueAt,
} from './json-text.ts';

/**
 * Form field for one member of a push body. Reading and writing a field leaves all other members
 * unchanged, even members that the form does not know.
 */
export interface Field {
  path: readonly string[];
  kind: FieldKind;
}

/**
 * Text form of a member: `kept` is a text that may be empty, `count` a number, `list` names separated
 * by commas, `moment` and `wall` a local time, written with and without the zone.
 */
type FieldKind = 'text' | 'kept' | 'count' | 'flag' | 'list' | 'moment' | 'wall' | 'badge';

/**
 * Returns the text of a member. Returns an empty text if the member is missing, and undefined if
 * the form cannot show the value.
 */
export function readField(body: JsonRecord, { path, kind }: Field): string | undefined {
  const value = valueAt(body, path);
  if (value === undefined || value === null) return isReachable(body, path) ? '' : undefined;
  return readers[kind](value);
}

/**
 * Returns the body with a changed member. An empty text removes the member. An emptied time stays:
 * without the member, a push for tomorrow would be sent at once.
 */
export function writeField(body: JsonRecord, { path, kind }: Field, text: string): JsonRecord {
  const isTime = kind === 'moment' || kind === 'wall';
  const isKept = kind === 'kept' || (isTime && valueAt(body, path) !== undefined);
  return withValueAt(body, path, text === '' && !isKept ? undefined : writers[kind](text));
}

/**
 * True if all parents in a path are objects or missing. A member cannot be set inside a text, such
 * as an `alert` text.
 */
function isReachable(body: JsonRecord, path: readonly string[]): boolean {
  return path.slice(0, -1).every((_, at) => {
    const found = valueAt(body, path.slice(0, at + 1));
    return found === undefined || isRecord(found);
  });
}

type Reader = (value: JsonValue) => string | undefined;

const textOf: Reader = (value) => (typeof value === 'string' ? value : undefined);

const digitsOf: Reader = (value) => {
  if (value instanceof ExactNumber) return value.text;
  return typeof value === 'number' || (typeof value === 'string' && /^\d+$/.test(value))
    ? String(value)
    : undefined;
};

const readers: Readonly<Record<FieldKind, Reader>> = {
  text: textOf,
  kept: textOf,
  wall: textOf,
  count: (value) => digitsOf(value) ?? textOf(value),
  badge: (value) => digitsOf(value) ?? textOf(value),
  flag: (value) => (value === true ? 'true' : value === false ? '' : undefined),
  list: (value) => {
    const names = typeof value === 'string' ? [value] : value;
    if (!Array.isArray(names) || names.length === 0) return undefined;
    const isPlain = names.every(
      (name) => typeof name === 'string' && /^[^\s,]([^,\n]*[^\s,])?$/.test(name),
    );
    return isPlain ? names.join(', ') : undefined;
  },
  moment: (value) => {
    const iso = isRecord(value) && value.__type === 'Date' ? value.iso : value;
    if (iso === '') return '';
    return typeof iso === 'string' && !Number.isNaN(Date.parse(iso))
      ? localMoment(new Date(iso))
      : undefined;
  },
};

const numberOf = (digits: string): JsonValue =>
  String(Number(digits)) === digits
    ? Number(digits)
    : new ExactNumber(digits.replace(/^0+(?=\d)/, ''));

const writers: Readonly<Record<FieldKind, (text: string) => JsonValue | undefined>> = {
  text: (text) => text,
  kept: (text) => text,
  wall: (text) => text,
  // The service refuses a text that is no number, and names the member.
  count: (text) => {
    const digits = text.replaceAll(/[,\s]/g, '');
    return /^-?\d+(?:\.\d+)?$/.test(digits) ? numberOf(digits) : text;
  },
  badge: (text) => (/^\d+$/.test(text) ? numberOf(text) : text),
  flag: (text) => text === 'true',
  list: (text) => {
    const names = text.split(/[,，\n]/).map((name) => name.trim());
    const given = names.filter((name) => name !== '');
    return given.length === 0 ? undefined : given;
  },
  moment: (text) => {
    const time = new Date(text);
    return Number.isNaN(time.getTime()) ? text : time.toISOString();
  },
};

/** Formats a time for `<input type="datetime-local">`, in the zone of this machine. */
export function localMoment(time: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${String(time.getFullYear()).padStart(4, '0')}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day}T${two(time.getHours())}:${two(time.getMinutes())}`;
}

const field = (kind: FieldKind, ...path: string[]): Field => ({ kind, path });

/** Fields of the message for all devices. */
export const messageFields = {
  title: field('text', 'data', 'title'),
  alert: field('text', 'data', 'alert'),
  image: field('text', 'data', 'image'),
  url: field('text', 'data', 'url'),
} as const;

/** Maximum number of buttons of a push. */
export const maxButtons = 3;

/** Button of a notification as the form edits it. `url` is empty if the button opens the app. */
export interface ButtonDraft {
  id: string;
  title: string;
  url: string;
}

/** Returns the buttons of a body; undefined if the form cannot show them. */
export function buttonsOf(body: JsonRecord): ButtonDraft[] | undefined {
  const found = valueAt(body, ['data', 'buttons']) ?? [];
  if (!Array.isArray(found)) return undefined;
  const buttons = found.flatMap((one) => buttonIn(one) ?? []);
  return buttons.length === found.length ? buttons : undefined;
}

function buttonIn(value: JsonValue): ButtonDraft | undefined {
  if (!isRecord(value)) return undefined;
  const { id = '', title = '', url = '', ...others } = value;
  return typeof id === 'string' &&
    typeof title === 'string' &&
    typeof url === 'string' &&
    Object.keys(others).length === 0
    ? { id, title, url }
    : undefined;
}

/** Returns the body with other buttons. No button removes the member. */
export function withButtons(body: JsonRecord, buttons: readonly ButtonDraft[]): JsonRecord {
  const members = buttons.map(({ id, title, url }) => ({
    id,
    title,
    ...(url === '' ? {} : { url }),
  }));
  return withValueAt(body, ['data', 'buttons'], members.length === 0 ? undefined : members);
}

/** Additional fields of the message. Each applies to the gateways that support it. */
export const detailFields = {
  badge: field('badge', 'data', 'badge'),
  sound: field('text', 'data', 'sound'),
  category: field('text', 'data', 'category'),
  thread: field('text', 'data', 'thread-id'),
  collapse: field('text', 'data', 'collapse-id'),
  notificationChannel: field('text', '_notificationChannel'),
  silent: field('flag', 'data', 'silent'),
} as const;

export const settingFields = {
  channels: field('list', 'channels'),
  cql: field('text', 'cql'),
  deviceType: field('text', 'device_type'),
  deviceIds: field('list', 'device_ids'),
  vendor: field('text', 'vendor'),
  pushTime: field('moment', 'push_time'),
  localTime: field('wall', 'push_time'),
  lifeSeconds: field('count', 'expiration_interval'),
  expirationTime: field('moment', 'expiration_time'),
  pace: field('count', 'flow_control'),
  prod: field('text', 'prod'),
  kind: field('text', 'kind'),
  messageClass: field('text', 'class'),
  deviceCap: field('count', 'device_cap'),
  quietHours: field('text', 'quiet_hours'),
  notificationId: field('text', 'notification_id'),
  campaign: field('text', 'campaign'),
} as const;

/** Returns the title and text fields for one kind of device. `key` is its member of `data`. */
export const overrideFields = (key: string): { title: Field; alert: Field } => ({
  title: field('text', 'data', key, 'title'),
  alert: field('text', 'data', key, 'alert'),
});

/** Returns the title and text fields of a translation. */
export const translationFields = (language: string): { title: Field; alert: Field } => ({
  title: field('text', 'languages', language, 'title'),
  alert: field('text', 'languages', language, 'alert'),
});

/** Returns the languages for which a body has a translation. */
export const languagesOf = ({ languages }: JsonRecord): string[] =>
  isRecord(languages) ? Object.keys(languages) : [];

/**
 * Adds an empty translation to the body. If `isPresent` is false, removes the translation instead.
 */
export function withLanguage(body: JsonRecord, language: string, isKept: boolean): JsonRecord {
  const changed = withValueAt(body, ['languages', language], isKept ? {} : undefined);
  return languagesOf(changed).length === 0
    ? withValueAt(changed, ['languages'], undefined)
    : changed;
}

/** Returns the fields for a variable's installation field and default. */
export const variableFields = (name: string): { field: Field; default: Field } => ({
  field: field('kept', 'variables', name, 'field'),
  default: field('kept', 'variables', name, 'default'),
});

/** Returns the names of the variables that are declared in a body. */
export const variablesOf = ({ variables }: JsonRecord): string[] =>
  isRecord(variables) ? Object.keys(variables) : [];

/**
 * Adds a variable to the body. If `isPresent` is false, removes the variable instead. By default, a
 * variable uses the installation field of the same name.
 */
export function withVariable(body: JsonRecord, name: string, isPresent: boolean): JsonRecord {
  const added = { field: name, default: '' };
  const changed = withValueAt(body, ['variables', name], isPresent ? added : undefined);
  return variablesOf(changed).length === 0
    ? withValueAt(changed, ['variables'], undefined)
    : changed;
}

/** How a push names its devices. */
export type TargetKind = 'where' | 'devices' | 'cql';

const membersOfTarget: Readonly<Record<TargetKind, readonly string[]>> = {
  where: ['where', 'channels'],
  devices: ['device_ids', 'device_type', 'vendor', 'device_profile', 'channel'],
  cql: ['cql'],
};

/**
 * Members that a push to listed devices cannot have. If they stayed in the body, they would be
 * ignored, and a push for tomorrow would be sent at once.
 */
const membersOfQuery = ['push_time', 'push_time_local', 'default_time_zone', 'flow_control'];

/** True if each device gets the push at `push_time` in its own time zone. */
export const isLocalTime = (body: JsonRecord): boolean => body.push_time_local === true;

/**
 * Returns the body with a sending time. Null removes the time. With `isLocal`, the time is the
 * local time of each device; otherwise it is the same moment for all devices.
 */
export function withPushTime(body: JsonRecord, time: Date | null, isLocal: boolean): JsonRecord {
  const { push_time: _, push_time_local: __, default_time_zone: zone, ...rest } = body;
  if (time === null) return rest;
  if (!isLocal) return { ...rest, push_time: time.toISOString() };
  const kept: JsonRecord = zone === undefined ? {} : { default_time_zone: zone };
  return { ...rest, push_time: localMoment(time), push_time_local: true, ...kept };
}

export function targetKindOf(body: JsonRecord): TargetKind {
  if (Object.hasOwn(body, 'device_ids')) return 'devices';
  return Object.hasOwn(body, 'cql') ? 'cql' : 'where';
}

/** Returns the body with another kind of target, without the members of the other kinds. */
export function withTargetKind(body: JsonRecord, kind: TargetKind): JsonRecord {
  if (targetKindOf(body) === kind) return body;
  const others = Object.entries(membersOfTarget).flatMap(([name, members]) =>
    name === kind ? [] : members,
  );
  const removed = new Set([...others, ...(kind === 'devices' ? membersOfQuery : [])]);
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => !removed.has(name)));
  const initial: Record<TargetKind, JsonRecord> = {
    where: { where: {} },
    devices: { device_type: 'ios', device_ids: [] },
    cql: { cql: 'select * from _Installation' },
  };
  return { ...initial[kind], ...kept };
}

/** Push body that was copied from another push. */
interface CopiedBody {
  body: JsonRecord;
  /** False if the record does not contain all listed devices or shows shortened tokens. */
  isComplete: boolean;
}

/** Converts a reply of the API to the JSON of a draft. */
export const toJson = (value: unknown): JsonValue => parseJsonText(JSON.stringify(value ?? null));

/**
 * Returns a body that repeats a push. `request` is the request in the push record. Times and ids
 * are not copied.
 */
export function bodyOfRequest(request: JsonRecord): CopiedBody {
  const {
    data,
    languages,
    variables,
    target,
    prod,
    topic,
    teamId,
    flowControl,
    messageClass,
    notificationChannel,
  } = request;
  const inData = isRecord(data) ? data._notificationChannel : undefined;
  const members: [string, JsonValue | undefined][] = [
    ['data', data],
    ['languages', languages],
    ['variables', variables],
    ['class', messageClass],
    ['prod', prod === 'dev' ? 'dev' : undefined],
    ['topic', topic],
    ['apns_team_id', teamId],
    ['flow_control', flowControl],
    ['_notificationChannel', inData === notificationChannel ? undefined : notificationChannel],
  ];
  const { isComplete, ...chosen } = targetOf(target);
  return { body: { ...chosen.members, ...present(members) }, isComplete };
}

function targetOf(target: JsonValue | undefined): { members: JsonRecord; isComplete: boolean } {
  if (!isRecord(target)) return { members: { where: {} }, isComplete: false };
  if (target.kind !== 'devices')
    return {
      members: present([
        ['where', target.where ?? {}],
        ['channels', target.channels],
      ]),
      isComplete: true,
    };
  const ids = Array.isArray(target.deviceIds) ? target.deviceIds : [];
  const isShort = ids.some((id) => typeof id === 'string' && id.includes('…'));
  const members: [string, JsonValue | undefined][] = [
    ['device_type', target.deviceType],
    ['device_ids', ids],
    ['vendor', target.vendor],
    ['device_profile', target.deviceProfile],
  ];
  return { members: present(members), isComplete: !isShort && target.listed === ids.length };
}

const present = (members: [string, JsonValue | undefined][]): JsonRecord =>
  Object.fromEntries(
    members.filter(
      (member): member is [string, JsonValue] => member[1] !== undefined && member[1] !== null,
    ),
  );

/** Refusal codes that concern one member but do not name it. */
const memberOfCode: Readonly<Record<number, string>> = {
  112: 'channels',
  152: 'push_time',
  102: 'where',
};

/**
 * Returns the member of the body that a refusal is about, as a dotted path such as `data.alert`.
 * Returns undefined if the refusal concerns no single member.
 */
export function memberOfRefusal({
  code,
  message,
}: {
  code: number;
  message: string;
}): string | undefined {
  const named =
    /^([A-Za-z_][\w.-]*): /.exec(message)?.[1] ?? /^([A-Za-z_]\w*) is required/.exec(message)?.[1];
  return named ?? memberOfCode[code];
}
