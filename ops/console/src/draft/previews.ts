import { isRecord, type JsonRecord, type JsonValue, valueAt } from './json-text.ts';

/** Visible parts of a message on a device, extracted from the request to its gateway. */
export interface VisibleMessage {
  title: string;
  text: string;
  subtitle: string;
  /** URL of an image. */
  image: string;
  /** Titles of the buttons. */
  buttons: string[];
  /** Number on the app icon. Null if the message sets none. */
  badge: number | null;
  /** True if nothing is shown and only the app receives the message. */
  isSilent: boolean;
}

/** Paths of the texts in a gateway's request. The first path with a text counts. */
interface TextPaths {
  title: string[];
  text: string[];
  subtitle?: string[];
  image?: string[];
  badge?: string[];
  /** List of buttons, and the member with the title of a button. */
  buttons?: { path: string; title: string };
}

const fcm: TextPaths = {
  title: ['message.android.notification.title', 'message.notification.title'],
  text: ['message.android.notification.body', 'message.notification.body'],
  image: ['message.android.notification.image', 'message.notification.image'],
  badge: ['message.android.notification.notification_count'],
};

const textPaths: Readonly<Record<string, TextPaths>> = {
  apns: {
    title: ['aps.alert.title'],
    text: ['aps.alert.body', 'aps.alert'],
    subtitle: ['aps.alert.subtitle'],
    badge: ['aps.badge'],
    image: ['image'],
    buttons: { path: 'buttons', title: 'title' },
  },
  fcm,
  vendor_g: fcm,
  vendor_a: {
    title: ['message.android.notification.title', 'message.notification.title', 'msg.body.title'],
    text: ['message.android.notification.body', 'message.notification.body', 'msg.body.content'],
    image: ['message.android.notification.image', 'message.notification.image'],
    badge: [
      'message.android.notification.badge.set_num',
      'message.android.notification.badge.add_num',
    ],
    buttons: { path: 'message.android.notification.buttons', title: 'name' },
  },
  vendor_b: {
    title: ['title'],
    text: ['description'],
    image: ['extra.notification_large_icon_uri'],
  },
  vendor_c: { title: ['noticeBarInfo.title'], text: ['noticeBarInfo.content'] },
  vendor_d: {
    title: ['title'],
    text: ['content'],
    subtitle: ['sub_title'],
    image: ['big_picture_id'],
  },
  vendor_e: { title: ['title'], text: ['content'] },
  vendor_f: {
    title: ['android.notification.title'],
    text: ['android.notification.body'],
    image: ['android.notification.image'],
    badge: ['android.notification.badge.setNum', 'android.notification.badge.addNum'],
    buttons: { path: 'android.notification.buttons', title: 'name' },
  },
  webpush: {
    title: ['notification.title', 'title'],
    text: ['notification.body', 'alert'],
    image: ['notification.image'],
    badge: ['app_badge'],
    buttons: { path: 'notification.actions', title: 'title' },
  },
  channel: {
    title: ['title'],
    text: ['alert'],
    image: ['image'],
    buttons: { path: 'buttons', title: 'title' },
  },
};

/**
 * Returns the visible parts of a payload. Returns undefined for a connector that the console does
 * not know.
 */
export function visibleMessage(connector: string, payload: JsonValue): VisibleMessage | undefined {
  const locations = textPaths[connector];
  if (locations === undefined || !isRecord(payload)) return undefined;
  const text = (paths: string[] = []) =>
    paths.map((path) => valueIn(payload, path)).find((found) => typeof found === 'string') ?? '';
  const badge = (locations.badge ?? [])
    .map((path) => valueIn(payload, path))
    .find((found) => typeof found === 'number');
  const texts = { title: text(locations.title), text: text(locations.text) };
  return {
    ...texts,
    subtitle: text(locations.subtitle),
    image: text(locations.image),
    buttons: buttonsIn(payload, locations.buttons),
    badge: typeof badge === 'number' ? badge : null,
    isSilent: texts.title === '' && texts.text === '',
  };
}

/** Returns the titles of the buttons in a request. */
function buttonsIn(payload: JsonRecord, buttons: TextPaths['buttons']): string[] {
  const found = buttons === undefined ? [] : valueIn(payload, buttons.path);
  return (Array.isArray(found) ? found : []).flatMap((button) => {
    const title = isRecord(button) ? button[buttons?.title ?? ''] : undefined;
    return typeof title === 'string' ? [title] : [];
  });
}

/** Finds a value by a dotted path. The names of a gateway's form fields may contain dots. */
function valueIn(payload: JsonRecord, path: string): JsonValue | undefined {
  return Object.hasOwn(payload, path) ? payload[path] : valueAt(payload, path.split('.'));
}
