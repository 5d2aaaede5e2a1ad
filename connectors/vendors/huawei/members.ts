/**
 * Members of Huawei's requests (protocol/huawei.md#messages, protocol/huawei.md#v3-requests;
 * protocol/push.md#vendor-objects).
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { numberIn } from '../../../shared/domain/plain-values.ts';
import type { Rendering } from '../../contract/connector.ts';
import { unfitMember } from '../../kit/content-reasons.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import {
  any,
  bytes,
  duration,
  flag,
  httpsUrl,
  int,
  jsonObject,
  like,
  list,
  object,
  oneName,
  oneNumber,
  oneWord,
  text,
  texts,
  type ValueType,
} from '../../kit/values.ts';

const largestInt = 2_147_483_647;
/** 15 days (protocol/huawei.md#messages). */
export const longestTtlS = 1_296_000;

/** Categories of both APIs; `MISS_CALL` is one of v3, `CUSTOMER_SERVICE` of older pages. */
const category = oneName([
  ...['IM', 'VOIP', 'MISS_CALL', 'SUBSCRIPTION', 'TRAVEL', 'HEALTH', 'WORK', 'ACCOUNT', 'EXPRESS', 'FINANCE'],
  ...['DEVICE_REMINDER', 'MAIL', 'PLAY_VOICE', 'MARKETING', 'CUSTOMER_SERVICE'],
]);

/**
 * Huawei's object; a number sets the badge, `Increment` adds one on the device
 * (protocol/huawei.md#messages). `names`: those of the two members.
 */
function badge([set, add]: readonly [string, string]): ValueType {
  return {
    expected: 'a whole number of at least 0, the string Increment, or the object of Huawei',
    read: (value) => {
      if (isJsonObject(value)) return value;
      if (value === 'Increment') return { [add]: 1 };
      const count = numberIn(value);
      return count !== undefined && Number.isInteger(count) && count >= 0
        ? { [set]: Math.min(count, 99) }
        : undefined;
    },
  };
}

/** A badge of v3 has no `class`, which v1 needs. */
const withoutClass = (type: ValueType): ValueType => ({
  ...type,
  read: (value) => {
    const { class: _, ...read } = objectOf(type.read(value));
    return type.read(value) === undefined ? undefined : read;
  },
});

/** A text, also written as the object that it holds as JSON. */
const dataText: ValueType = {
  expected: 'a string',
  read: (value) => (isJsonObject(value) ? JSON.stringify(value) : text().read(value)),
};

const shown = { title: text(), body: text(), image: text() };

export const v1Members = new MemberTable(
  [
    ...membersAt('', {
      notification: part,
      data: dataText,
      android: part,
      apns: object,
      webpush: object,
      review: any,
    }),
    ...membersAt('notification', shown),
    ...membersAt('android', {
      collapse_key: int(-1, 100),
      urgency: oneName(['HIGH', 'NORMAL']),
      category,
      ttl: duration(1, longestTtlS, true),
      bi_tag: text(),
      receipt_id: text(),
      fast_app_target: oneNumber(1, 2),
      target_user_type: oneNumber(0, 1),
      data: dataText,
      notification: part,
    }),
    ...membersAt('android.notification', {
      ...shown,
      icon: text(),
      color: like(/^#[0-9a-fA-F]{6}$/, 'a colour such as "#AACCDD"'),
      sound: text(),
      default_sound: flag,
      tag: text(),
      importance: oneName(['LOW', 'NORMAL', 'HIGH']),
      channel_id: text(),
      click_action: part,
      body_loc_key: text(),
      body_loc_args: texts,
      title_loc_key: text(),
      title_loc_args: texts,
      multi_lang_key: object,
      notify_summary: text(),
      style: oneNumber(0, 1, 2, 3),
      big_title: text(),
      big_body: text(),
      inbox_content: texts,
      notify_id: int(0, largestInt),
      group: text(),
      badge: badge(['set_num', 'add_num']),
      ticker: text(),
      when: text(),
      local_only: flag,
      use_default_vibrate: flag,
      use_default_light: flag,
      vibrate_config: texts,
      visibility: oneName(['VISIBILITY_UNSPECIFIED', 'PRIVATE', 'PUBLIC', 'SECRET']),
      light_settings: object,
      foreground_show: flag,
      profile_id: text(0, 64),
      buttons: list(object, 'a list of at most 3 objects', 3),
    }),
    ...membersAt('android.notification.click_action', {
      type: oneNumber(1, 2, 3),
      intent: text(1),
      action: text(1),
      url: httpsUrl,
    }),
    ...membersAt('android.notification.badge', { add_num: int(1, 99), set_num: int(0, 99), class: text(1) }),
  ],
  { flat: ['android', 'android.notification'], unknown: { place: 'android' } },
);

export const v3Members = new MemberTable(
  [
    ...membersAt('', { payload: part, pushOptions: part }),
    ...membersAt('pushOptions', {
      testMessage: flag,
      ttl: {
        expected: `a number of seconds from 1 to ${longestTtlS}`,
        read: (value) => {
          const read = duration(1, longestTtlS, true).read(value);
          return typeof read === 'string' ? Number.parseInt(read, 10) : undefined;
        },
      },
      biTag: bytes(64),
      receiptId: text(),
      collapseKey: int(-1, 100),
      backgroundMode: oneNumber(0, 1),
    }),
    ...membersAt('payload', {
      notification: part,
      extraData: dataText,
      proxyData: oneWord('ENABLE'),
      formId: int(0, Number.MAX_SAFE_INTEGER),
      version: int(0, largestInt),
      moduleName: text(1),
      formName: text(1),
      abilityName: text(1),
      formData: jsonObject,
      images: list(object, 'a list of one object', 1),
      activityId: int(-largestInt - 1, largestInt),
      operation: oneNumber(0, 1, 2),
      event: text(1),
      status: any,
      mute: flag,
      activityData: object,
    }),
    ...membersAt('payload.notification', {
      category,
      title: text(1),
      body: text(1),
      clickAction: part,
      image: httpsUrl,
      style: oneNumber(0, 1, 3),
      bigTitle: text(),
      bigBody: text(),
      inboxContent: list(text(0, 1024), 'a list of at most 3 strings of at most 1024 characters', 3),
      notifyId: int(-1, largestInt),
      appMessageId: like(/^[A-Za-z0-9+/=\-_ ]{1,64}$/, '1 to 64 letters, digits, blanks and +/=-_'),
      profileId: text(0, 64),
      badge: withoutClass(badge(['setNum', 'addNum'])),
      sound: text(),
      soundDuration: int(1, 60),
      foregroundShow: flag,
    }),
    ...membersAt('payload.notification.clickAction', {
      actionType: oneNumber(0, 1, 3, 5),
      action: text(),
      uri: text(),
      data: jsonObject,
    }),
    ...membersAt('payload.notification.badge', { addNum: int(1, 99), setNum: int(0, 99) }),
  ],
  {
    flat: ['payload.notification', 'pushOptions', 'payload'],
    unknown: { place: 'payload.notification' },
    // Names of v1 for members that v3 has too.
    aliases: {
      notify_id: 'notifyId',
      foreground_show: 'foregroundShow',
      inbox_content: 'inboxContent',
      profile_id: 'profileId',
      receipt_id: 'receiptId',
      bi_tag: 'biTag',
      collapse_key: 'collapseKey',
      add_num: 'addNum',
      set_num: 'setNum',
    },
  },
);

/**
 * Members of both requests that callers cannot set, since they select devices or prevent sending.
 */
const ours = ['token', 'topic', 'condition', 'target', 'validate_only'];
/** Complete messages of v1, and the member that chooses the kind of v3 message. */
const ofNoTable = ['message', 'msg', 'push-type', 'pushType'];
/** Members that mean something else in v3. */
const notOfV3 = new Set([...ours, ...ofNoTable, 'style', 'sound', 'android', 'notification', 'data']);
const notOfV1 = new Set([...ours, ...ofNoTable]);

const without = (object: JsonObject, isLeftOut: (name: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !isLeftOut(name)));

/**
 * Returns the members of the v1 message that the vendor's object sets; those of v3 only are left
 * out.
 */
export const placedInV1 = (vendor: JsonObject, path: string): Rendering<JsonObject> =>
  v1Members.place(
    without(vendor, (name) => notOfV1.has(name) || (v3Members.hasAtTop(name) && !v1Members.hasAtTop(name))),
    path,
    { moved: { notification: 'android.notification' } },
  );

/** Returns the members of a complete message of v1, without those that select devices. */
export const nativeInV1 = (message: JsonObject, path: string): Rendering<JsonObject> =>
  v1Members.place(
    without(message, (name) => ours.includes(name)),
    path,
  );

/**
 * Returns the members of the v3 request that the vendor's object sets; those of v1 only are left
 * out.
 */
export const placedInV3 = (vendor: JsonObject, path: string): Rendering<JsonObject> =>
  v3Members.place(
    without(vendor, (name) => notOfV3.has(name) || (v1Members.hasAtTop(name) && !v3Members.hasAtTop(name))),
    path,
  );

export const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});

/**
 * Returns the first rule on several members that a v1 notification breaks, or null
 * (protocol/huawei.md#messages). `path`: that of the notification in the push.
 */
export function clickError(notification: JsonObject, path: string): string | null {
  const { action, intent, type, url } = objectOf(notification.click_action);
  if (type === 1 && intent === undefined && action === undefined)
    return unfitMember(`${path}.click_action`, 'must have intent or action for the type 1');
  return type === 2 && url === undefined
    ? unfitMember(`${path}.click_action`, 'must have url for the type 2')
    : null;
}
