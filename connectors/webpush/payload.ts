/**
 * Renders `data` of a push as the text of a Web Push message (protocol/webpush.md#message). One JSON
 * serves service workers and browsers that show declarative messages without one. Pure.
 */
import { flagIn, numberIn } from '../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { dataKeyOwners } from '../../shared/domain/labels.ts';
import { type Button, richContentOf } from '../../shared/domain/pushes/rich-content.ts';
import { reason } from '../../shared/domain/reasons.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
} from '../contract/connector.ts';
import { bodySizeError } from '../kit/android.ts';
import { MemberTable, membersAt } from '../kit/members.ts';
import {
  any,
  contentRefused,
  filled,
  flag,
  httpsUrl,
  int,
  list,
  matching,
  object,
  oneWord,
  text,
  unfitMember,
} from '../kit/values.ts';
import { maxTextBytes } from './encryption.ts';

export const can: Capabilities = { passThrough: true, badge: true, collapse: true };

/** One subscription per request, and one record of 4096 bytes (RFC 8030, 7.2). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1, bodyBytes: maxTextBytes };

/** Longest time to live that all push services accept: 28 days. */
const maxTtlS = 2_419_200;

const actions = list(object, 'a list of at most 3 objects with action, title and navigate', 3);

/** Members of `data.web` (protocol/webpush.md#members). */
export const webMembers = new MemberTable(
  [
    ...membersAt('', {
      alert: text(),
      title: text(),
      silent: flag,
      badge: any,
      'collapse-id': text(1, 255),
      payload: any,
      urgency: oneWord('very-low', 'low', 'normal', 'high'),
      topic: matching(
        /^(?:[A-Za-z0-9_-]{4}){0,7}[A-Za-z0-9_-]{2,4}$/,
        '2 to 32 letters, digits, - and _; not 5, 9, 13, … of them, which Apple refuses',
      ),
      ttl: int(1, maxTtlS, 'seconds'),
    }),
    ...membersAt('notification', {
      body: text(),
      navigate: filled(2048),
      lang: text(0, 35),
      dir: oneWord('auto', 'ltr', 'rtl'),
      tag: text(0, 255),
      icon: httpsUrl,
      image: httpsUrl,
      badgeIcon: httpsUrl,
      actions,
      requireInteraction: flag,
      renotify: flag,
      vibrate: list(int(0, 10_000), 'a list of milliseconds', 20),
      timestamp: int(0, Number.MAX_SAFE_INTEGER),
      mutable: flag,
      data: object,
    }),
  ],
  { flat: ['notification'], unknown: 'refuse', aliases: { url: 'navigate', buttons: 'actions' } },
);

/** The text of a message, and the headers that its content decides. */
export interface WebPushPayload {
  /** The text for a device without a badge of its own. */
  text: Buffer;
  /** Returns the text with the badge of one device. Absent if all devices get the same text. */
  textWith?(badge: number): Buffer;
  urgency: 'very-low' | 'low' | 'normal' | 'high';
  /** `Topic` as the push gives it, or the id that it is made from; null without either. */
  topic: { value: string } | { collapseId: string } | null;
  /** Time to live in seconds that the push gives; null for the rest of the push's lifetime. */
  ttlS: number | null;
  /** True if a repeat replaces the notification on the device. */
  isRepeatHidden: boolean;
}

/** Content members of a push for Web Push devices, after `data.web` has replaced the defaults. */
interface WebContent {
  alert: string;
  title: string;
  silent: boolean;
  badge: number | 'Increment' | null;
  collapseId: string | null;
  custom: JsonObject;
  /** Members of the notification that the push gives. */
  notification: JsonObject;
  payload: Json | undefined;
  headers: Pick<WebPushPayload, 'ttlS'> & {
    urgency: WebPushPayload['urgency'] | null;
    topic: string | null;
  };
}

/**
 * Renders a push for Web Push devices of one type. Browsers have the type `web`. Apps that receive
 * by UnifiedPush have another type; they get the members as JSON if the push is silent.
 */
export function renderWebPush(message: PushMessage, deviceType: string): Rendering<WebPushPayload> {
  const content = contentOf(message.data);
  if (!content.ok) return content;
  const { headers, payload, silent, collapseId, badge } = content.payload;
  const isBrowser = deviceType === 'web';
  if (silent && isBrowser)
    return {
      ok: false,
      outcome: 'dropped',
      error: reason('silentNotSupported', { connector: 'webpush' }),
    };
  const isNative = payload !== undefined;
  if (!silent && !isNative && content.payload.alert.trim() === '')
    return misfit(contentRefused('Web Push content needs an alert'));
  const textOf = (count: number | null): Buffer =>
    Buffer.from(
      isNative
        ? typeof payload === 'string'
          ? payload
          : JSON.stringify(payload)
        : JSON.stringify(
            silent ? plainOf(content.payload) : messageOf(content.payload, message, count),
          ),
    );
  const isCounted = badge === 'Increment' && !isNative && !silent;
  // An incremented badge counts with the most digits that it may get.
  const largest = textOf(isCounted ? 2 ** 31 - 1 : typeof badge === 'number' ? badge : null);
  const tooLarge = bodySizeError('webpush', largest.length, limits);
  if (tooLarge) return tooLarge;
  const topic = headers.topic === null ? null : { value: headers.topic };
  return {
    ok: true,
    payload: {
      text: isCounted ? textOf(1) : largest,
      ...(isCounted ? { textWith: textOf } : {}),
      urgency: headers.urgency ?? (silent ? 'normal' : 'high'),
      topic: topic ?? (collapseId === null ? null : { collapseId }),
      ttlS: headers.ttlS,
      isRepeatHidden: !silent && !isNative,
    },
  };
}

/**
 * Returns the tag with which a later message replaces a notification. Null if the message shows
 * none of its own.
 */
export function identityOfWebPush(message: PushMessage, deviceType: string): JsonObject | null {
  const content = contentOf(message.data);
  if (!content.ok || content.payload.silent || content.payload.payload !== undefined) return null;
  const { notification } = content.payload;
  const { tag = tagOf(message, content.payload) } = notification;
  return renderWebPush(message, deviceType).ok ? { tag } : null;
}

/** Returns the tag of a notification. The id of the push hides a repeat of its own message. */
const tagOf = ({ objectId, replaces }: PushMessage, { collapseId }: WebContent): Json =>
  replaces?.tag ?? collapseId ?? objectId;

/** Returns the text of a message, for a dry run. */
export const previewWebPush = ({ text: shown }: WebPushPayload): string => shown.toString('utf8');

/** Returns how a push changes the stored badge of each device. */
export function webBadgeOf({ data }: PushMessage): 'Increment' | number | null {
  const content = contentOf(data);
  return content.ok && !content.payload.silent ? content.payload.badge : null;
}

/** Returns the seconds that a message may wait, from its expiry. Never 0, which Edge refuses. */
export const ttlOf = ({ ttlS }: WebPushPayload, leftMs: number): number =>
  Math.max(1, Math.min(ttlS ?? maxTtlS, Math.ceil(leftMs / 1000), maxTtlS));

/** Members of content that are not custom members. */
const contentMembers = new Set([
  'alert',
  'title',
  'silent',
  'badge',
  'sound',
  'action',
  'category',
  'content-available',
  'mutable-content',
  'thread-id',
  'collapse-id',
  'image',
  'url',
  'buttons',
  '_notificationChannel',
]);

function contentOf(data: JsonObject): Rendering<WebContent> {
  const { web } = data;
  const own = isJsonObject(web)
    ? webMembers.arrange(web, 'web')
    : { ok: true as const, payload: {} };
  if (!own.ok) return own;
  const { notification: given, ...over } = own.payload;
  const defaults = Object.fromEntries(
    Object.entries(data).filter(
      ([name, value]) => name !== '__proto__' && !(dataKeyOwners.has(name) && isJsonObject(value)),
    ),
  );
  const members = { ...defaults, ...withoutNulls(over) };
  const { alert = '', silent = null, title = null, badge = null } = members;
  const isSilent = flagIn(silent ?? false);
  if (isSilent === undefined) return invalid('silent', 'must be true or false');
  const texts = isJsonObject(alert) ? alert : { body: alert };
  const [body, heading] = [texts.body ?? '', title ?? texts.title ?? ''];
  if (typeof body !== 'string') return invalid('alert', 'must be a text, or an object with body');
  if (typeof heading !== 'string') return invalid('title', 'must be a text');
  const collapseId = members['collapse-id'];
  return {
    ok: true,
    payload: {
      alert: body,
      title: heading,
      silent: isSilent,
      badge: badge === 'Increment' ? badge : countIn(badge),
      collapseId: typeof collapseId === 'string' && collapseId !== '' ? collapseId : null,
      custom: customOf(defaults),
      notification: { ...richOf(defaults), ...withoutNulls(isJsonObject(given) ? given : {}) },
      payload: over.payload ?? undefined,
      headers: {
        urgency: wordIn(over.urgency) as WebPushPayload['urgency'] | null,
        topic: wordIn(over.topic),
        ttlS: typeof over.ttl === 'number' ? over.ttl : null,
      },
    },
  };
}

const wordIn = (value: Json | undefined): string | null =>
  typeof value === 'string' ? value : null;

/** Returns the custom members: those of the push, and those in `data.custom`. */
function customOf(defaults: JsonObject): JsonObject {
  const { custom, ...members } = defaults;
  const named = Object.entries(members).filter(([name]) => !contentMembers.has(name));
  return {
    ...Object.fromEntries(named),
    ...(isJsonObject(custom) ? custom : custom === undefined ? {} : { custom }),
  };
}

/** Returns the portable picture, link and buttons of a push as members of a notification. */
function richOf(data: JsonObject): JsonObject {
  const { image, url, buttons } = richContentOf(data);
  return {
    ...(image === undefined ? {} : { image }),
    ...(url === undefined ? {} : { navigate: url }),
    ...(buttons === undefined ? {} : { actions: buttons.map(actionOf) }),
  };
}

/** Returns a portable button as an action. Browsers open `navigate` of the action. */
const actionOf = ({ id, title, url }: Button): JsonObject => ({
  action: id,
  title,
  ...(url === undefined ? {} : { navigate: url }),
});

const withoutNulls = (members: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));

function countIn(badge: Json): number | null {
  const count = numberIn(badge);
  return count !== undefined && Number.isInteger(count) && count >= 0 ? count : null;
}

const invalid = (member: string, rule: string): { ok: false; error: string } => ({
  ok: false,
  error: unfitMember(member, rule),
});

/** Members for an app that shows nothing by itself. */
const plainOf = ({ alert, title, custom }: WebContent): JsonObject => ({
  ...custom,
  ...(alert === '' ? {} : { alert }),
  ...(title === '' ? {} : { title }),
  silent: true,
});

/**
 * Returns the message: the declarative form, and beside it the same members that other apps get.
 * Browsers ignore members that they do not know. `app_badge` and `mutable` are in both places,
 * because browsers read them in different ones.
 */
function messageOf(content: WebContent, message: PushMessage, count: number | null): JsonObject {
  const { alert, title, custom, notification, collapseId } = content;
  const { mutable, badgeIcon, navigate, data, ...options } = notification;
  const shared = {
    ...(count === null ? {} : { app_badge: count }),
    ...(mutable === undefined ? {} : { mutable }),
  };
  const own = { ...custom, ...(isJsonObject(data) ? data : {}) };
  return {
    // Safari shows a declarative message without the service worker only if it can open a page.
    ...(typeof navigate === 'string' ? { web_push: 8030 } : {}),
    ...shared,
    notification: {
      // A declarative message needs a title, so the text becomes the title.
      title: title.trim() === '' ? alert : title,
      ...(title.trim() === '' ? {} : { body: alert }),
      tag: tagOf(message, content),
      ...(collapseId === null ? {} : { renotify: true }),
      ...(typeof navigate === 'string' ? { navigate } : {}),
      ...(badgeIcon === undefined ? {} : { badge: badgeIcon }),
      ...options,
      // A replacement carries the tag of the message that it replaces.
      ...(message.replaces?.tag === undefined ? {} : { tag: message.replaces.tag }),
      ...shared,
      data: own,
    },
    alert,
    ...(title === '' ? {} : { title }),
    ...own,
  };
}
