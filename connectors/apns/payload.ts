/**
 * Renders `data` of a push as body and headers for APNs (protocol/push.md#ios-content,
 * protocol/push.md#content, protocol/apns.md#request). Pure. Reports wrong types as errors.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { dataKeyOwners } from '../../shared/domain/labels.ts';
import { type Button, richContentOf } from '../../shared/domain/pushes/rich-content.ts';
import { misfit, type PushMessage, type Rendering } from '../contract/connector.ts';
import { contentRefused, oneNumber, oneWord, text, unfitMember } from '../kit/values.ts';
import {
  type ApsForm,
  apsFormOf,
  as,
  isShowing,
  notificationMembers,
  PayloadError,
  showingMembers,
  withoutEmpty,
  withTitle,
} from './aps.ts';
import {
  broadcastType,
  defaultPushType,
  type Priority,
  type PushType,
  pushTypeOf,
  pushTypes,
} from './push-types.ts';

/** The part of a rendered push that all recipients share. */
export interface ApnsPayload extends Omit<ApnsText, 'text' | 'bytes' | 'maxBytes'> {
  /** The body. If the badge is incremented per device, its number is missing at `badgeAt`. */
  body: Buffer;
}

/** Rendered push with its body as text. */
export interface ApnsText {
  text: string;
  /**
   * Size of the body and its maximum. An incremented badge counts with the maximum number of
   * digits.
   */
  bytes: number;
  maxBytes: number;
  /**
   * Offset at which each recipient's badge is inserted. Absent if all recipients have the same
   * body.
   */
  badgeAt?: number;
  pushType: string;
  priority: Priority;
  /**
   * `apns-collapse-id`: replaces an earlier notification with the same id. Null if the header is
   * not sent.
   */
  collapseId: string | null;
  /** True if the device shows a repeated message only once. */
  isRepeatHidden: boolean;
  /** Epoch seconds; `0` means that APNs tries only once. */
  expiration: string;
}

/** Members of the plain layout that are moved into `aps`. */
const apsMembers = new Set(Object.keys(notificationMembers));

type Control = 'collapseId' | 'priority' | 'pushType';

/** Members that become headers, under both names (protocol/labels.md#members-of-apns). */
const controlMembers = new Map<string, Control>([
  ['collapse-id', 'collapseId'],
  ['pgw-priority', 'priority'],
  ['apns-priority', 'priority'],
  ['pgw-push-type', 'pushType'],
  ['apns-push-type', 'pushType'],
]);

/** Members that are only for Android (protocol/push.md#android-content). */
const androidMembers = new Set(['silent', 'action', '_notificationChannel', '__proto__']);

/** Maximum number of digits of an incremented badge. */
const badgeDigits = 10;
const maxCollapseBytes = 64;

/**
 * Offset of the badge. `aps` is always the first member of the body, and `badge` the first member
 * of `aps`.
 */
const badgeAt = Buffer.byteLength('{"aps":{"badge":');

/**
 * Renders the shared part of a message. Ignores the objects of other types of devices. The members
 * of `ios` override the default members. With `badge: "Increment"`, the number is missing at
 * `badgeAt`.
 */
export function renderApns(message: PushMessage): Rendering<ApnsPayload> {
  const rendering = renderApnsText(message);
  if (!rendering.ok) return rendering;
  const { text, bytes: _, maxBytes: _most, ...shared } = rendering.payload;
  return { ok: true, payload: { ...shared, body: Buffer.from(text) } };
}

/** Like `renderApns`, with the body as text. Used for texts that differ between recipients. */
export function renderApnsText(message: PushMessage): Rendering<ApnsText> {
  try {
    return { ok: true, payload: render(message) };
  } catch (error) {
    if (error instanceof PayloadError)
      return error.isMisfit ? misfit(error.message) : { ok: false, error: error.message };
    throw error;
  }
}

/**
 * Returns the collapse id of a message, with which a later message replaces it
 * (protocol/apns.md#repeats). Null if the system does not show the message.
 */
export function identityOfApns(message: PushMessage): JsonObject | null {
  const rendering = renderApnsText(message);
  if (!rendering.ok || !rendering.payload.isRepeatHidden) return null;
  return { collapseId: rendering.payload.collapseId };
}

/** Returns the body for one device. An incremented badge is shown as 1. */
export function previewApns({ body, badgeAt: at }: ApnsPayload): string {
  const text = body.toString('utf8');
  // Everything before `at` is ASCII, so bytes and characters have the same offsets.
  return at === undefined ? text : `${text.slice(0, at)}1${text.slice(at)}`;
}

function render(message: PushMessage): ApnsText {
  const content = contentOf(message);
  const { aps: own, pushType } = checkBody(content, typeNameOf(content));
  const aps = own && withExtras(own, { message, content, pushType });
  const type = message.broadcast ? broadcastType : pushTypeOf(pushType);
  const { isShown = false, maxBytes, priorities } = type;
  // APNs refuses another expiration for a channel that stores no message.
  const expiresAtOnce = type.expiresAtOnce || message.broadcast?.storage === 'none';
  const isSpliced = aps?.badge === 'Increment';
  const text = textOfBody(aps, content.custom, isSpliced);
  // If the push has no collapse id, its own id is used. A repeat then replaces its own notification
  // and no other (protocol/apns.md#repeats). Apps handle the types that the system does not show.
  // A replacement carries the id of the message that it replaces.
  const replaced = message.replaces?.collapseId;
  const collapseId =
    typeof replaced === 'string'
      ? replaced
      : (collapseIdOf(content) ?? (isShown ? message.objectId : null));
  // A device ignores a second state of an activity with the same timestamp. A repeated start makes
  // a second activity.
  const isState = pushType === 'liveactivity' && aps?.event !== 'start';
  const bytes = Buffer.byteLength(text) + (isSpliced ? badgeDigits : 0);
  if (bytes > maxBytes) throw new PayloadError(tooLarge(bytes, maxBytes), true);
  return {
    text,
    bytes,
    maxBytes,
    ...(isSpliced ? { badgeAt } : {}),
    pushType,
    priority:
      priorityOf(content, pushType, type) ?? classPriority(message, pushType) ?? priorities[0],
    collapseId,
    isRepeatHidden: isState || (isShown && collapseId !== null),
    expiration: expiresAtOnce ? '0' : String(Math.ceil(message.expiresAtMs / 1000)),
  };
}

/**
 * Adds the members of the message class and of the rich content to a notification. Members of the
 * push take precedence. `mutable-content` lets an extension of the app show picture and buttons
 * (protocol/push.md#rich-content).
 */
function withExtras(
  aps: JsonObject,
  { message, content, pushType }: { message: PushMessage; content: IosContent; pushType: string },
): JsonObject {
  if (!pushTypeOf(pushType).isShown) return aps;
  const { buttons, image } = richContentOf(content.custom);
  const needsExtension = (image !== undefined || buttons !== undefined) && 'alert' in aps;
  const extras = {
    ...(needsExtension ? { 'mutable-content': 1 } : {}),
    ...(needsExtension && buttons ? { category: categoryOf(buttons) } : {}),
    ...classMembers(message).aps,
  };
  // A null removes a member of the class.
  const added = Object.entries(extras).filter(([name]) => !content.aps.has(name));
  return { ...aps, ...Object.fromEntries(added) };
}

/** Names the category of buttons by their ids. The app registers it or its extension makes it. */
const categoryOf = (buttons: readonly Button[]): string => buttons.map(({ id }) => id).join('|');

/** Members of the message class: members of `aps`, and the priority. */
interface ClassMembers {
  aps: JsonObject;
  priority?: Json;
}

function classMembers({ messageClass }: Pick<PushMessage, 'messageClass'>): ClassMembers {
  const found: ClassMembers = { aps: {} };
  for (const { members, path } of messageClass?.layers ?? [])
    for (const [name, value] of Object.entries(members)) {
      if (value === null) continue;
      if (controlMembers.get(name) === 'priority')
        found.priority = controlReaders.priority(`${path}.${name}`, value);
      else found.aps[name] = notificationMembers[name]?.(`${path}.${name}`, value) ?? value;
    }
  return found;
}

/** Members of `aps` that belong to the content of a push, and not to its class. */
const contentOnly = new Set(['alert', 'title', 'badge', 'content-available']);

const classNames = [...apsMembers].filter((name) => !contentOnly.has(name)).concat('apns-priority');

/** Returns the error of members of a message class; null if APNs has all of them. */
export function classError(members: JsonObject, path: string): string | null {
  for (const name of Object.keys(members)) {
    const isPriority = controlMembers.get(name) === 'priority';
    if (!isPriority && (!apsMembers.has(name) || contentOnly.has(name)))
      return unfitMember(`${path}.${name.slice(0, 40)}`, `must be one of ${classNames.join(', ')}`);
  }
  try {
    classMembers({
      messageClass: { name: 'default', isDeclared: true, layers: [{ members, path }] },
    });
    return null;
  } catch (error) {
    if (error instanceof PayloadError) return error.message;
    throw error;
  }
}

/** Returns the error for a body that is too large for APNs. */
export const tooLarge = (bytes: number, maxBytes: number): string =>
  `the iOS payload has ${bytes} bytes; APNs takes at most ${maxBytes}`;

/** Value of a member with its path in the push. */
interface Sent {
  value: Json;
  path: string;
}

/**
 * Content for Apple devices: the default members, overridden by the members of `ios`. Both may use
 * either layout.
 */
interface IosContent {
  /**
   * `isShared` is true for default members of the plain layout, which other types of devices get
   * too.
   */
  aps: Map<string, Sent & { isShared: boolean }>;
  control: Map<Control, Sent>;
  custom: JsonObject;
  /** Path of the last `aps` object; null if the content uses the plain layout. */
  apsPath: string | null;
}

function contentOf({ data }: Pick<PushMessage, 'data'>): IosContent {
  const { ios = {}, ...defaults } = data;
  if (!isJsonObject(ios)) throw new PayloadError(unfitMember('ios', 'must be an object'));
  const content: IosContent = { aps: new Map(), control: new Map(), custom: {}, apsPath: null };
  addLayer(content, defaults, '');
  addLayer(content, ios, 'ios.');
  return content;
}

function addLayer(
  content: IosContent,
  { aps = null, ...plain }: JsonObject,
  prefix: '' | 'ios.',
): void {
  for (const [name, value] of Object.entries(plain)) {
    const control = controlMembers.get(name);
    const path = `${prefix}${name}`;
    if (dataKeyOwners.has(name) || androidMembers.has(name)) continue;
    if (control) setControl(content, control, { value, path });
    else if (apsMembers.has(name)) content.aps.set(name, { value, path, isShared: prefix === '' });
    else content.custom[name] = value;
  }
  if (aps === null) return;
  content.apsPath = `${prefix}aps`;
  if (!isJsonObject(aps)) throw new PayloadError(unfitMember(content.apsPath, 'must be an object'));
  for (const [name, value] of Object.entries(aps))
    content.aps.set(name, { value, path: `${content.apsPath}.${name}`, isShared: false });
}

/** Sets a header. Both spellings of its name are checked, even though only one is used. */
function setControl(content: IosContent, control: Control, sent: Sent): void {
  if (sent.value === null) return;
  content.control.set(control, { ...sent, value: controlReaders[control](sent.path, sent.value) });
}

const controlReaders: Readonly<Record<Control, (path: string, value: Json) => Json>> = {
  collapseId: as(text()),
  priority: as(oneNumber(10, 5, 1)),
  pushType: as(oneWord(...pushTypes.keys())),
};

/**
 * Returns the push type that the content names. In the plain layout, only types that show a
 * notification or wake the app are allowed (protocol/apns.md#push-types).
 */
function typeNameOf({ apsPath, control }: IosContent): string {
  const given = control.get('pushType');
  const name = String(given?.value ?? defaultPushType);
  const { hasAps, isPlain = false } = pushTypeOf(name);
  if (isPlain || !hasAps || apsPath !== null) return name;
  const plain = [...pushTypes].filter(([, type]) => type.isPlain).map(([one]) => one);
  throw new PayloadError(
    unfitMember(
      String(given?.path),
      `must be one of ${plain.join(', ')} in the plain layout; ${name} needs the layout of aps`,
    ),
  );
}

/**
 * Checks the content against the row of its push type. Returns its `aps`, or null if the type has
 * no `aps`. The push type changes if the content has nothing to show.
 */
function checkBody(
  content: IosContent,
  pushType: string,
): { pushType: string; aps: JsonObject | null } {
  const form = apsFormOf(pushType);
  // A null removes a member of an earlier layer. Default members of the plain layout belong to a
  // notification, so other push types ignore them.
  const given = [...content.aps].filter(
    ([name, { isShared, value }]) =>
      value !== null &&
      name !== '__proto__' &&
      !(
        isShared &&
        (form === null || (form.showing !== 'needed' && showingMembers.includes(name)))
      ),
  );
  if (form === null) {
    if (given.length === 0 && Object.keys(content.custom).length > 0)
      return { pushType, aps: null };
    throw new PayloadError(withoutAps(pushType, given[0]?.[1].path));
  }
  const read = given.map(([name, { path, value }]): [string, Json] => [
    name,
    Object.hasOwn(form.members, name) ? (form.members[name]?.(path, value) ?? value) : value,
  ]);
  const aps = withoutEmpty(withTitle(Object.fromEntries(read)));
  if (form.showing === 'needed' && !isShowing(aps)) {
    if (form.withoutShowing !== undefined && aps['content-available'] === 1)
      return checkBody(content, form.withoutShowing);
    throw new PayloadError(
      contentRefused('iOS content needs an alert, a badge, a sound or content-available'),
      true,
    );
  }
  checkForm(aps, {
    form,
    pushType,
    pathOf: (name) => content.aps.get(name)?.path ?? pathIn(content, name),
  });
  return { pushType, aps };
}

const pathIn = ({ apsPath }: IosContent, name: string): string =>
  apsPath === null ? name : `${apsPath}.${name}`;

const withoutAps = (pushType: string, path: string | undefined): string =>
  path === undefined
    ? contentRefused(`a push of the type ${pushType} needs members beside aps`)
    : unfitMember(path, `must not be given: a push of the type ${pushType} has a body without aps`);

/** Checks the rules of a push type that concern several members. */
function checkForm(
  aps: JsonObject,
  { form, pushType, pathOf }: { form: ApsForm; pushType: string; pathOf: (name: string) => string },
): void {
  const { excluding, required = [], requiredByEvent = {}, showing } = form;
  const visible = showing === 'forbidden' ? showingMembers.find((name) => name in aps) : undefined;
  if (visible !== undefined)
    throw new PayloadError(
      unfitMember(
        pathOf(visible),
        `must not be given: a push of the type ${pushType} shows nothing`,
      ),
    );
  const event = typeof aps.event === 'string' ? aps.event : '';
  const ofEvent = Object.hasOwn(requiredByEvent, event) ? (requiredByEvent[event] ?? []) : [];
  const missing = [...required, ...ofEvent].find((name) => !(name in aps));
  if (missing !== undefined)
    throw new PayloadError(
      unfitMember(
        pathOf(missing),
        `must be given: a push of the type ${pushType}${event && ` and the event ${event}`} needs it`,
      ),
    );
  if (excluding?.every((name) => name in aps))
    throw new PayloadError(`${excluding.map(pathOf).join(' and ')} must not be given together`);
}

/** Returns the priority of the message class, if it has one and the push type allows it. */
function classPriority(message: PushMessage, pushType: string): Priority | undefined {
  const { priority } = classMembers(message);
  return priority === undefined
    ? undefined
    : pushTypeOf(pushType).priorities.find((one) => one === String(priority));
}

/** Returns the priority that the content names; undefined if it names none. */
function priorityOf(
  { control }: IosContent,
  pushType: string,
  { priorities }: PushType,
): Priority | undefined {
  const given = control.get('priority');
  if (!given) return undefined;
  const priority = priorities.find((one) => one === String(given.value));
  if (priority === undefined) {
    const isDerived = control.get('pushType')?.value !== pushType;
    const why = isDerived ? ', which a push with content-available and nothing to show is' : '';
    throw new PayloadError(
      unfitMember(
        given.path,
        `must be ${priorities.join(' or ')} for a push of the type ${pushType}${why}`,
      ),
    );
  }
  return priority;
}

function collapseIdOf({ control }: IosContent): string | null {
  const { path, value: id } = control.get('collapseId') ?? {};
  if (typeof id !== 'string' || id === '') return null;
  if (Buffer.byteLength(id) > maxCollapseBytes)
    throw new PayloadError(
      unfitMember(String(path), `must have at most ${maxCollapseBytes} bytes`),
    );
  // A header may contain only visible ASCII characters. Other ids are replaced by their digest.
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(id)
    ? id
    : createHash('sha256').update(id).digest('base64url');
}

/**
 * Returns the badge for Apple devices: a number, or the case-sensitive word `Increment`. Returns
 * null if the content sets no badge or is invalid (protocol/push.md#badges).
 */
export function badgeOf(message: Pick<PushMessage, 'data'>): 'Increment' | number | null {
  try {
    const content = contentOf(message);
    const badge = checkBody(content, typeNameOf(content)).aps?.badge;
    return badge === 'Increment' || typeof badge === 'number' ? badge : null;
  } catch (error) {
    if (error instanceof PayloadError) return null;
    throw error;
  }
}

/** Returns the push type of a message; null if the content is invalid. */
export function pushTypeIn(message: Pick<PushMessage, 'data'>): string | null {
  try {
    return typeNameOf(contentOf(message));
  } catch (error) {
    if (error instanceof PayloadError) return null;
    throw error;
  }
}

/**
 * Returns the body as text, without the number of an incremented badge. `JSON.stringify` is not
 * used for the whole body, because JavaScript moves number-like names to the front, and `badge`
 * must come first.
 */
function textOfBody(aps: JsonObject | null, custom: JsonObject, isSpliced: boolean): string {
  if (aps === null) return `{${membersOf(custom).join(',')}}`;
  const { badge, ...others } = aps;
  const badgeMember =
    badge === undefined ? [] : [`"badge":${isSpliced ? '' : JSON.stringify(badge)}`];
  const apsText = `{${[...badgeMember, ...membersOf(others)].join(',')}}`;
  return `{${[`"aps":${apsText}`, ...membersOf(custom)].join(',')}}`;
}

/**
 * Returns the members of an object as JSON text without braces, in a list with at most one entry.
 */
function membersOf(object: JsonObject): string[] {
  const text = JSON.stringify(object).slice(1, -1);
  return text === '' ? [] : [text];
}
