import { flagIn } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { isAppleDeviceType } from '../labels.ts';
import { type Detail, detail } from '../texts/texts.ts';

/** Members of `data` with rich content, which each connector puts where its vendor has them. */
export const richMembers = ['image', 'url', 'buttons'] as const;
export type RichMember = (typeof richMembers)[number];

/** Button below a notification. Without `url` a tap opens the app. */
export interface Button {
  id: string;
  title: string;
  url?: string;
}

/** Rich content of a push (protocol/push.md#rich-content). */
export interface RichContent {
  image?: string;
  /** What a tap opens: a web page, or an address of the app. */
  url?: string;
  buttons?: readonly Button[];
}

export const maxButtons = 3;
const maxUrlChars = 1024;

/** Addresses that a tap must not open, because they contain code. */
const barredSchemes = new Set(['javascript:', 'data:', 'vbscript:', 'file:']);

const isUrl = (value: Json | undefined, isRight: (url: URL) => boolean): value is string =>
  typeof value === 'string' &&
  value.length <= maxUrlChars &&
  /^[!-~]+$/.test(value) &&
  URL.canParse(value) &&
  isRight(new URL(value));

const isImage = (value: Json): value is string =>
  isUrl(
    value,
    ({ protocol, username, password }) =>
      protocol === 'https:' && username === '' && password === '',
  );

const isTarget = (value: Json | undefined): value is string =>
  isUrl(value, ({ protocol }) => !barredSchemes.has(protocol));

const buttonMembers = new Set(['id', 'title', 'url']);

/** Returns the error of a button; undefined if it is valid. `at` is its path. */
function buttonError(button: Json, at: string): Detail | undefined {
  if (!isJsonObject(button)) return detail('richButton', { member: at });
  const { id, title, url = null } = button;
  if (typeof id !== 'string' || !/^[\w.-]{1,64}$/.test(id))
    return detail('richButtonId', { member: `${at}.id` });
  if (typeof title !== 'string' || title.trim() === '' || [...title].length > 40)
    return detail('richButtonTitle', { member: `${at}.title` });
  if (url !== null && !isTarget(url))
    return detail('richUrl', { member: `${at}.url`, most: maxUrlChars });
  const other = Object.keys(button).find((name) => !buttonMembers.has(name));
  return other === undefined
    ? undefined
    : detail('richButtonMember', { member: `${at}.${other.slice(0, 40)}` });
}

/** Returns the first error of the buttons; undefined if they are valid. */
function buttonsError(value: Json, at: string): Detail | undefined {
  if (!Array.isArray(value) || value.length > maxButtons)
    return detail('richButtons', { member: at, most: maxButtons });
  for (const [index, button] of value.entries()) {
    const error = buttonError(button, `${at}.${index}`);
    if (error) return error;
  }
  const ids = value.map((button) => (isJsonObject(button) ? button.id : null));
  return new Set(ids).size === ids.length ? undefined : detail('richButtonIds', { member: at });
}

/**
 * Returns the first wrong form in the rich content of an object; undefined if all is valid. A null
 * counts as absent. `prefix` is the path of the object.
 */
function richError(
  { image = null, url = null, buttons = null }: JsonObject,
  prefix: string,
): Detail | undefined {
  if (image !== null && !isImage(image))
    return detail('richImage', { member: `${prefix}image`, most: maxUrlChars });
  if (url !== null && !isTarget(url))
    return detail('richUrlOwn', { member: `${prefix}url`, most: maxUrlChars });
  return buttons === null ? undefined : buttonsError(buttons, `${prefix}buttons`);
}

/**
 * Throws error 111 if a member of the rich content has another form. The text says that custom
 * members of these names belong in `data.custom`.
 */
export function checkRichContent(content: JsonObject, prefix: string): void {
  const error = richError(content, prefix);
  if (error) throw refuse('incorrectType', error);
}

/** Returns the rich content of an object that was checked. Members of another form are left out. */
export function richContentOf({
  image = null,
  url = null,
  buttons = null,
}: JsonObject): RichContent {
  return {
    ...(isImage(image) ? { image } : {}),
    ...(isTarget(url) ? { url } : {}),
    ...(Array.isArray(buttons) && buttons.length > 0 && !buttonsError(buttons, '')
      ? { buttons: buttons.flatMap((button) => buttonIn(button) ?? []) }
      : {}),
  };
}

function buttonIn(button: Json): Button | undefined {
  if (!isJsonObject(button)) return undefined;
  const { id, title, url } = button;
  if (typeof id !== 'string' || typeof title !== 'string') return undefined;
  return { id, title, ...(typeof url === 'string' ? { url } : {}) };
}

/**
 * Returns the rich content of `data` for devices of one platform. Members of `ios` and `android`
 * override the default members.
 */
export function richContentFor(data: JsonObject, platform: 'android' | 'ios'): RichContent {
  const own = data[platform];
  return richContentOf({ ...data, ...(isJsonObject(own) ? own : {}) });
}

/** Returns the names of the rich content that a push has for devices of a type. */
export function givenRichMembers({ data }: { data: JsonObject }, deviceType: string): RichMember[] {
  if (flagIn(data.silent ?? false)) return [];
  const content = richContentFor(data, isAppleDeviceType(deviceType) ? 'ios' : 'android');
  return richMembers.filter((name) => content[name] !== undefined);
}
