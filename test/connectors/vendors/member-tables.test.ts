/**
 * Compares the tables of members with the vendors' documents. The lists here are written by hand
 * (July to November 2026; sources: docs/reference/protocol). Add a new member of a vendor both here
 * and to its table.
 */
import { describe, expect, test } from 'vitest';
import { fcmMembers } from '../../../connectors/fcm/payload.ts';
import type { MemberTable } from '../../../connectors/kit/members.ts';
import { honorMembers } from '../../../connectors/vendors/honor/payload.ts';
import { v1Members, v3Members } from '../../../connectors/vendors/huawei/members.ts';
import { meizuMembers } from '../../../connectors/vendors/meizu/payload.ts';
import { oppoMembers } from '../../../connectors/vendors/oppo/payload.ts';
import { vivoMembers } from '../../../connectors/vendors/vivo/payload.ts';
import { xiaomiMembers } from '../../../connectors/vendors/xiaomi/payload.ts';

/** Members by their place in the request, separated by spaces. */
type Lists = Record<string, string>;

const androidNotification = `title body icon color sound tag click_action body_loc_key body_loc_args title_loc_key
  title_loc_args channel_id ticker sticky event_time local_only notification_priority default_sound
  default_vibrate_timings default_light_settings vibrate_timings visibility notification_count light_settings image`;
const androidConfig = `collapse_key ttl restricted_package_name data fcm_options direct_boot_ok
  bandwidth_constrained_ok restricted_satellite_ok`;
const light = 'color light_on_duration light_off_duration';
const colour = 'red green blue alpha';
const huaweiNotification = `title body icon color sound default_sound tag importance channel_id click_action body_loc_key
  body_loc_args title_loc_key title_loc_args multi_lang_key notify_summary image style big_title big_body inbox_content
  notify_id group badge ticker when local_only use_default_vibrate use_default_light vibrate_config visibility
  light_settings foreground_show profile_id buttons`;

const tables: [name: string, table: MemberTable, lists: Lists][] = [
  [
    'FCM',
    fcmMembers,
    {
      '': 'data notification android android_v2 apns webpush fcm_options',
      notification: 'title body image',
      android: `${androidConfig} priority notification`,
      'android.fcm_options': 'analytics_label',
      'android.notification': `${androidNotification} bypass_proxy_notification proxy`,
      'android.notification.light_settings': light,
      'android.notification.light_settings.color': colour,
      android_v2: `${androidConfig} remote_notification background_sync`,
      'android_v2.fcm_options': 'analytics_label',
      'android_v2.remote_notification': 'notification mutable_content use_as_v1_data_message',
      'android_v2.remote_notification.notification': `${androidNotification} id`,
      'android_v2.remote_notification.notification.light_settings': light,
      'android_v2.remote_notification.notification.light_settings.color': colour,
      apns: 'headers payload fcm_options live_activity_token',
      'apns.fcm_options': 'analytics_label image',
      webpush: 'headers data notification fcm_options',
      'webpush.fcm_options': 'link analytics_label',
      fcm_options: 'analytics_label',
    },
  ],
  [
    'Huawei v1',
    v1Members,
    {
      '': 'notification data android apns webpush review',
      notification: 'title body image',
      android: `collapse_key urgency category ttl bi_tag receipt_id fast_app_target target_user_type data notification`,
      'android.notification': huaweiNotification,
      'android.notification.click_action': 'type intent action url',
      'android.notification.badge': 'add_num set_num class',
    },
  ],
  [
    'Huawei v3',
    v3Members,
    {
      '': 'payload pushOptions',
      pushOptions: 'testMessage ttl biTag receiptId collapseKey backgroundMode',
      payload: `notification extraData proxyData formId version moduleName formName abilityName formData images
        activityId operation event status mute activityData`,
      'payload.notification': `category title body clickAction image style bigTitle bigBody inboxContent notifyId
        appMessageId profileId badge sound soundDuration foregroundShow`,
      'payload.notification.clickAction': 'actionType action uri data',
      'payload.notification.badge': 'addNum setNum',
    },
  ],
  [
    'Xiaomi',
    xiaomiMembers,
    {
      '': `title description payload pass_through notify_type notify_id time_to_live time_to_send
        restricted_package_name extra`,
      extra: `channel_id notify_effect intent_uri web_uri notify_foreground sound_uri badge only_send_once jobkey
        flow_control callback callback.param callback.type template_id template_param miui.focus.param`,
    },
  ],
  [
    'Honor',
    honorMembers,
    {
      '': 'notification data android',
      notification: 'title body image',
      android: 'ttl biTag data targetUserType notification',
      'android.notification': `title body image clickAction style bigTitle bigBody importance when buttons badge notifyId
        tag group`,
      'android.notification.clickAction': 'type intent action url',
      'android.notification.badge': 'addNum setNum badgeClass',
    },
  ],
  [
    'OPPO',
    oppoMembers,
    {
      '': 'verify_registration_id',
      notification: `app_message_id style title sub_title content click_action_type click_action_activity click_action_url
        action_parameters off_line off_line_ttl show_ttl show_time_type show_start_time show_end_time notify_id
        channel_id category notify_level private_msg_template_id private_title_parameters private_content_parameters
        call_back_url call_back_parameter fix_speed fix_speed_rate network_type badge_operation_type badge_message_count
        big_picture_id small_picture_id`,
    },
  ],
  [
    'vivo',
    vivoMembers,
    {
      '': `notifyType title content timeToLive skipType skipContent networkType classification category clientCustomMap
        pushMode notifyId profileId sendOnline foregroundShow addBadge auditReview liveMessage extra`,
      extra: 'callback callback.param',
    },
  ],
  [
    'Meizu',
    meizuMembers,
    {
      '': 'noticeBarInfo noticeExpandInfo clickTypeInfo pushTimeInfo advanceInfo vipInfo extra',
      noticeBarInfo: 'title content noticeMsgType noticeBarType',
      noticeExpandInfo: 'noticeExpandType noticeExpandContent noticeExpandImgUrl',
      clickTypeInfo: 'clickType activity url parameters customAttribute',
      pushTimeInfo: 'offLine validTime',
      advanceInfo: `suspend clearNoticeBar notificationType notifyKey fixDisplay fixStartDisplayTime
        fixEndDisplayTime`,
      'advanceInfo.notificationType': 'vibrate lights sound',
      extra: 'callback callback.param callback.type',
    },
  ],
];

/** Allowed words of a member, from the vendor's document. */
const words: [table: MemberTable, place: string, name: string, words: string][] = [
  [fcmMembers, 'android', 'priority', 'NORMAL HIGH'],
  [
    fcmMembers,
    'android.notification',
    'notification_priority',
    'PRIORITY_UNSPECIFIED PRIORITY_MIN PRIORITY_LOW PRIORITY_DEFAULT PRIORITY_HIGH PRIORITY_MAX',
  ],
  [
    fcmMembers,
    'android.notification',
    'visibility',
    'VISIBILITY_UNSPECIFIED PRIVATE PUBLIC SECRET',
  ],
  [fcmMembers, 'android.notification', 'proxy', 'PROXY_UNSPECIFIED ALLOW DENY IF_PRIORITY_LOWERED'],
  [
    v3Members,
    'payload.notification',
    'category',
    `IM VOIP MISS_CALL SUBSCRIPTION TRAVEL HEALTH WORK ACCOUNT EXPRESS FINANCE DEVICE_REMINDER MAIL PLAY_VOICE MARKETING
      CUSTOMER_SERVICE`,
  ],
  [honorMembers, 'android.notification', 'importance', 'LOW NORMAL'],
  [
    oppoMembers,
    'notification',
    'category',
    'IM ACCOUNT DEVICE_REMINDER ORDER TODO SUBSCRIPTION NEWS CONTENT MARKETING SOCIAL',
  ],
  [oppoMembers, 'notification', 'notify_level', '1 2 16'],
  [
    vivoMembers,
    '',
    'category',
    'IM ACCOUNT TODO DEVICE_REMINDER ORDER SUBSCRIPTION NEWS CONTENT MARKETING SOCIAL',
  ],
  [meizuMembers, 'noticeBarInfo', 'noticeMsgType', '0 1'],
  [xiaomiMembers, 'extra', 'notify_effect', '1 2 3'],
];

const wordsIn = (text: string): string[] => text.split(/\s+/).sort();

describe.each(tables)('the members of %s', (_, table, lists) => {
  test('are those of the vendor’s list, each in its place', () => {
    const places = new Map<string, string[]>();
    for (const { name, parent } of table.members)
      places.set(parent, [...(places.get(parent) ?? []), name].sort());
    expect(Object.fromEntries(places)).toEqual(
      Object.fromEntries(Object.entries(lists).map(([parent, names]) => [parent, wordsIn(names)])),
    );
  });

  test('are named once in an object, and every object is a member of its parent', () => {
    const paths = table.members.map(({ name, parent }) => `${parent}/${name}`);
    expect(new Set(paths).size).toBe(paths.length);
    for (const { parent } of table.members) {
      const [name = '', ...outer] = parent.split('.').reverse();
      if (parent !== '' && parent !== 'notification')
        expect(table.has(outer.reverse().join('.'), name), parent).toBe(true);
    }
  });
});

test.each(words)('%#: the words of a member are the vendor’s', (table, parent, name, list) => {
  const { type } =
    table.members.find((member) => member.parent === parent && member.name === name) ?? {};
  const known = wordsIn(list);
  for (const word of known) expect(String(type?.read(word))).toBe(word);
  expect(
    type?.expected
      .split(/, | or |one of /)
      .filter(Boolean)
      .sort(),
  ).toEqual(known);
  for (const other of ['', 'other', -7, {}, null]) expect(type?.read(other)).toBeUndefined();
});

test('many members are arranged in linear time', { timeout: 5000 }, () => {
  const members = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`k${i}`, i]));
  const arranged = xiaomiMembers.arrange(members, 'mi');
  expect(arranged.ok && Object.keys(arranged.payload)).toHaveLength(30_000);
});
