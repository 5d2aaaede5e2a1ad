/**
 * Members of Huawei's requests (protocol/huawei.md#messages, protocol/huawei.md#v3-requests;
 * protocol/push.md#vendor-objects), with their types.
 */

import { numberIn } from '../../../shared/domain/client-values.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { Rendering } from '../../contract/connector.ts';
import { classErrorIn } from '../../kit/class-layers.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import {
  any,
  bytes,
  duration,
  flag,
  httpsUrl,
  int,
  jsonObject,
  list,
  matching,
  object,
  objectOf,
  oneName,
  oneNumber,
  oneWord,
  text,
  texts,
  unfitMember,
  type ValueType,
} from '../../kit/values.ts';

const largestInt = 2_147_483_647;
/** 15 days, the maximum of Huawei (protocol/huawei.md#messages). */
export const maxTtlS = 1_296_000;

/** Categories of both APIs. `CUSTOMER_SERVICE` is only in older documentation. */
const category = oneName([
  ...[
    'IM',
    'VOIP',
    'MISS_CALL',
    'SUBSCRIPTION',
    'TRAVEL',
    'HEALTH',
    'WORK',
    'ACCOUNT',
    'EXPRESS',
    'FINANCE',
  ],
  ...['DEVICE_REMINDER', 'MAIL', 'PLAY_VOICE', 'MARKETING', 'CUSTOMER_SERVICE'],
]);

/** v1 has no `MISS_CALL`. A missed call has the category of calls there. */
const v1Category: ValueType = {
  ...category,
  read: (value) => {
    const name = category.read(value);
    return name === 'MISS_CALL' ? 'VOIP' : name;
  },
};

/**
 * Badge of Huawei. A number sets the badge, and `Increment` adds one on the device
 * (protocol/huawei.md#messages). The arguments are the names of the two members.
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

/** Returns the badge type of v3, which has no `class`. v1 needs `class`. */
const withoutClass = (type: ValueType): ValueType => ({
  ...type,
  read: (value) => {
    const { class: _, ...read } = objectOf(type.read(value));
    return type.read(value) === undefined ? undefined : read;
  },
});

/** A string. An object is converted to JSON text. */
const dataText: ValueType = {
  expected: 'a string',
  read: (value) => (isJsonObject(value) ? JSON.stringify(value) : text().read(value)),
};

const textMembers = { title: text(), body: text(), image: text() };

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
    ...membersAt('notification', textMembers),
    ...membersAt('android', {
      collapse_key: int(-1, 100),
      urgency: oneName(['HIGH', 'NORMAL']),
      category: v1Category,
      ttl: duration(1, maxTtlS, true),
      bi_tag: text(),
      receipt_id: text(),
      fast_app_target: oneNumber(1, 2),
      target_user_type: oneNumber(0, 1),
      data: dataText,
      notification: part,
    }),
    ...membersAt('android.notification', {
      ...textMembers,
      icon: text(),
      color: matching(/^#[0-9a-fA-F]{6}$/, 'a colour such as "#AACCDD"'),
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
    ...membersAt('android.notification.badge', {
      add_num: int(1, 99),
      set_num: int(0, 99),
      class: text(1),
    }),
  ],
  { flat: ['android', 'android.notification'], unknown: { parent: 'android' } },
);

export const v3Members = new MemberTable(
  [
    ...membersAt('', { payload: part, pushOptions: part }),
    ...membersAt('pushOptions', {
      testMessage: flag,
      ttl: {
        expected: `a number of seconds from 1 to ${maxTtlS}`,
        read: (value) => {
          const read = duration(1, maxTtlS, true).read(value);
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
      inboxContent: list(
        text(0, 1024),
        'a list of at most 3 strings of at most 1024 characters',
        3,
      ),
      notifyId: int(-1, largestInt),
      appMessageId: matching(
        /^[A-Za-z0-9+/=\-_ ]{1,64}$/,
        '1 to 64 letters, digits, blanks and +/=-_',
      ),
      profileId: text(0, 64),
      badge: withoutClass(badge(['setNum', 'addNum'])),
      sound: text(),
      soundDuration: int(1, 60),
      foregroundShow: flag,
    }),
    ...membersAt('payload.notification.clickAction', {
      actionType: oneNumber(0, 1, 3),
      action: text(),
      uri: text(),
      data: jsonObject,
    }),
    ...membersAt('payload.notification.badge', { addNum: int(1, 99), setNum: int(0, 99) }),
  ],
  {
    flat: ['payload.notification', 'pushOptions', 'payload'],
    unknown: { parent: 'payload.notification' },
    // v1 names of members that v3 has too.
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
 * Members that callers cannot set in either request, because they select devices or prevent
 * sending.
 */
const protectedMembers = ['token', 'topic', 'condition', 'target', 'validate_only'];
/** Members that contain complete messages of v1, and the member with the push type of v3. */
const specialMembers = ['message', 'msg', 'push-type', 'pushType'];
/** Members that have another meaning in v3. */
const v1OnlyMembers = new Set([
  ...protectedMembers,
  ...specialMembers,
  'style',
  'sound',
  'android',
  'notification',
  'data',
]);
const v3OnlyMembers = new Set([...protectedMembers, ...specialMembers]);

const without = (object: JsonObject, isLeftOut: (name: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !isLeftOut(name)));

/**
 * Returns the members of the v1 message that the vendor's object sets. Members that only v3 has are
 * ignored.
 */
export const vendorMembersInV1 = (vendor: JsonObject, path: string): Rendering<JsonObject> =>
  v1Members.arrange(
    without(
      vendor,
      (name) => v3OnlyMembers.has(name) || (v3Members.hasAtTop(name) && !v1Members.hasAtTop(name)),
    ),
    path,
    { moved: { notification: 'android.notification' } },
  );

/** Returns the members of a complete v1 message, without the members that select devices. */
export const nativeInV1 = (message: JsonObject, path: string): Rendering<JsonObject> =>
  v1Members.arrange(
    without(message, (name) => protectedMembers.includes(name)),
    path,
  );

/**
 * Returns the members of the v3 request that the vendor's object sets. Members that only v1 has are
 * ignored.
 */
export const vendorMembersInV3 = (vendor: JsonObject, path: string): Rendering<JsonObject> =>
  v3Members.arrange(
    without(
      vendor,
      (name) => v1OnlyMembers.has(name) || (v1Members.hasAtTop(name) && !v3Members.hasAtTop(name)),
    ),
    path,
  );

/**
 * Returns the error if a v1 click action lacks its target (protocol/huawei.md#messages); null
 * otherwise. `path` is the path of the notification in the push.
 */
export function clickError(notification: JsonObject, path: string): string | null {
  const { action, intent, type, url } = objectOf(notification.click_action);
  if (type === 1 && intent === undefined && action === undefined)
    return unfitMember(`${path}.click_action`, 'must have intent or action for the type 1');
  return type === 2 && url === undefined
    ? unfitMember(`${path}.click_action`, 'must have url for the type 2')
    : null;
}

/**
 * Returns the error of members of a message class, which may belong to either request; null if
 * Huawei has all of them.
 */
export function classError(members: JsonObject, path: string): string | null {
  for (const [name, value] of Object.entries(members)) {
    const one = Object.fromEntries([[name, value]]);
    const errors = [
      ...(v1Members.hasAtTop(name) || !v3Members.hasAtTop(name) ? [v1Members] : []),
      ...(v3Members.hasAtTop(name) && !v1OnlyMembers.has(name) ? [v3Members] : []),
    ].map((table) =>
      classErrorIn(
        table,
        one,
        path,
        table === v1Members ? { notification: 'android.notification' } : {},
      ),
    );
    const error = errors.find((found) => found !== null);
    if (error) return error;
  }
  return null;
}
