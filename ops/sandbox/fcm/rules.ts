/**
 * Checks of a message that FCM makes (protocol/fcm.md#message, protocol/fcm.md#limits), with
 * Google's field names. Pure.
 */
import { z } from 'zod';

const text = z.string();
const duration = z.string().regex(/^\d+(\.\d{1,9})?s$/);
const ttl = duration.refine((value) => Number.parseFloat(value) <= 2_419_200);
const isAllowedKey = (name: string) => !/^(from|message_type)$|^(google|gcm)(\.|$)/.test(name);
const data = z.record(text.refine(isAllowedKey), text);

const imageUrl = z.url({ protocol: /^https?$/ });
const notification = z.strictObject({ title: text, body: text, image: imageUrl }).partial();

const colour = z
  .strictObject({ red: z.number(), green: z.number(), blue: z.number(), alpha: z.number() })
  .partial();

const shownOnAndroid = {
  ...notification.shape,
  icon: text,
  color: z.string().regex(/^#[0-9a-fA-F]{6}$/),
  sound: text,
  tag: text,
  click_action: text,
  channel_id: text,
  ticker: text,
  sticky: z.boolean(),
  event_time: z.iso.datetime({ offset: true }),
  local_only: z.boolean(),
  notification_priority: z.enum(
    ['UNSPECIFIED', 'MIN', 'LOW', 'DEFAULT', 'HIGH', 'MAX'].map((name) => `PRIORITY_${name}`),
  ),
  default_sound: z.boolean(),
  default_vibrate_timings: z.boolean(),
  vibrate_timings: z.array(duration),
  default_light_settings: z.boolean(),
  light_settings: z.strictObject({
    color: colour,
    light_on_duration: duration,
    light_off_duration: duration,
  }),
  visibility: z.enum(['VISIBILITY_UNSPECIFIED', 'PRIVATE', 'PUBLIC', 'SECRET']),
  notification_count: z.int().min(0),
  body_loc_key: text,
  body_loc_args: z.array(text),
  title_loc_key: text,
  title_loc_args: z.array(text),
};

const options = z
  .strictObject({ analytics_label: z.string().regex(/^[a-zA-Z0-9-_.~%]{1,50}$/) })
  .partial();

const forAndroid = {
  collapse_key: text,
  ttl,
  restricted_package_name: text,
  data,
  fcm_options: options,
  direct_boot_ok: z.boolean(),
  bandwidth_constrained_ok: z.boolean(),
  restricted_satellite_ok: z.boolean(),
};

const android = z
  .strictObject({
    ...forAndroid,
    priority: z.enum(['NORMAL', 'HIGH']),
    notification: z
      .strictObject({
        ...shownOnAndroid,
        bypass_proxy_notification: z.boolean(),
        proxy: z.enum(['PROXY_UNSPECIFIED', 'ALLOW', 'DENY', 'IF_PRIORITY_LOWERED']),
      })
      .partial(),
  })
  .partial();

const secondAndroid = z
  .strictObject({
    ...z.strictObject(forAndroid).partial().shape,
    remote_notification: z
      .strictObject({
        notification: z.strictObject({ ...shownOnAndroid, id: z.int32() }).partial(),
        mutable_content: z.boolean().optional(),
        use_as_v1_data_message: z.boolean().optional(),
      })
      .optional(),
    background_sync: z.strictObject({}).optional(),
  })
  .refine(
    (value) => (value.remote_notification === undefined) !== (value.background_sync === undefined),
  );

const free = z.record(text, z.unknown());
const headers = z.record(text, text);

const apns = z
  .strictObject({
    headers,
    payload: free,
    fcm_options: z.strictObject({ ...options.shape, image: text }).partial(),
    live_activity_token: text,
  })
  .partial();

const webpush = z
  .strictObject({
    headers,
    data,
    notification: free,
    fcm_options: z.strictObject({ ...options.shape, link: text }).partial(),
  })
  .partial();

const message = z
  .strictObject({
    token: text.min(1).optional(),
    fid: text.min(1).optional(),
    data: data.optional(),
    notification: notification.optional(),
    android: android.optional(),
    android_v2: secondAndroid.optional(),
    apns: apns.optional(),
    webpush: webpush.optional(),
    fcm_options: options.optional(),
  })
  .refine((value) => value.android === undefined || value.android_v2 === undefined);

const body = z.strictObject({
  validate_only: z.boolean().optional(),
  message: message.refine(({ fid, token }) => (fid === undefined) !== (token === undefined), {
    error: 'exactly one target is required',
  }),
});

const maxBytes = 4096;

/** Field violation in the form of `google.rpc.BadRequest`. */
export interface Violation {
  field: string;
  description: string;
}

/** Returns the first violation in a body; undefined if FCM would accept it. */
export function violationOf(sent: unknown): Violation | undefined {
  const result = body.safeParse(sent);
  if (!result.success) {
    const [issue] = result.error.issues;
    const unknown = issue?.code === 'unrecognized_keys' ? [issue.keys[0] ?? ''] : [];
    const field = [...(issue?.path ?? []), ...unknown].map(String).join('.');
    return { field: field || 'message', description: issue?.message ?? 'Invalid message' };
  }
  const { token: _, fid: _fid, ...rest } = result.data.message;
  const bytes = Buffer.byteLength(JSON.stringify(rest));
  return bytes > maxBytes
    ? { field: 'message', description: `Message is too big: ${bytes} bytes` }
    : undefined;
}
