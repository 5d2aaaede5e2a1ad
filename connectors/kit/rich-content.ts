/**
 * Rich content for Android devices: the picture, what a tap opens, and the buttons of a push
 * (protocol/push.md#rich-content). Gateways without a place for a member leave it to the app, which
 * gets all members of the push.
 */
import type { JsonObject } from '../../shared/domain/json.ts';
import {
  type Button,
  type RichContent,
  richContentFor,
} from '../../shared/domain/pushes/rich-content.ts';
import type { PushMessage } from '../contract/connector.ts';

/**
 * Returns the rich content of a push for Android devices. Members of `android` override the default
 * members.
 */
export const richContentIn = ({ data }: Pick<PushMessage, 'data'>): RichContent =>
  richContentFor(data, 'android');

/** True for addresses that a browser opens. Other addresses belong to the app. */
export const isWebUrl = (url: string | undefined): url is string =>
  url !== undefined && /^https?:\/\//i.test(url);

/** Names of the members of a notification: Huawei and Honor have the same ones in two spellings. */
interface Spelling {
  clickAction: string;
  actionType: string;
}

const spellings = {
  snake: { clickAction: 'click_action', actionType: 'action_type' },
  camel: { clickAction: 'clickAction', actionType: 'actionType' },
} as const satisfies Record<string, Spelling>;

/** Actions of a button: open the app, or a web page. */
const opensApp = 0;
const opensPage = 2;
/** Type of a click action that opens a web page, which must be https. */
const webClick = 2;

/** Returns the rich content as members of a notification of Huawei (v1) or Honor. */
export function richNotification(
  { image, url, buttons }: RichContent,
  spelling: keyof typeof spellings,
): JsonObject {
  const names = spellings[spelling];
  return {
    ...(image === undefined ? {} : { image }),
    ...(isHttps(url) ? { [names.clickAction]: { type: webClick, url } } : {}),
    ...(buttons === undefined ? {} : { buttons: buttons.map((button) => buttonOf(button, names)) }),
  };
}

const isHttps = (url: string | undefined): url is string =>
  url !== undefined && /^https:\/\//i.test(url);

/** A button without a web page opens the app, which gets its id. */
function buttonOf({ id, title, url }: Button, { actionType }: Spelling): JsonObject {
  if (isHttps(url)) return { name: title, [actionType]: opensPage, intent: url };
  const data = { button: id, ...(url === undefined ? {} : { url }) };
  return { name: title, [actionType]: opensApp, data: JSON.stringify(data) };
}
