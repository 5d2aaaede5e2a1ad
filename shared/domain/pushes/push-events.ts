/**
 * Events of pushes that apps report: a device received, opened or dismissed the message of a push
 * (protocol/push-records.md#events).
 */
import { z } from 'zod';
import type { AppOptions } from '../apps/app.ts';
import { time } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import type { JsonObject } from '../json.ts';
import { detail } from '../texts/texts.ts';
import type { LiveActivity } from './live-activity.ts';

export const pushEventTypes = ['received', 'opened', 'dismissed'] as const;
export type PushEventType = (typeof pushEventTypes)[number];

/** Number of devices that reported an event of a push, by type. Each device counts once. */
export type PushEventTotals = Record<PushEventType, number>;

export const noPushEvents: Readonly<PushEventTotals> = { received: 0, opened: 0, dismissed: 0 };

/** Custom member of a message that contains the id of its push. */
export const pushIdMember = '_push';

/** Maximum number of events in a call. */
export const maxPushEvents = 100;

/** Body of `POST /1.1/push/events`. */
export const pushEventsBody = z
  .strictObject({
    installationId: z
      .string()
      .min(1)
      .max(256)
      .refine((text) => !text.includes('\0'), 'must not contain U+0000')
      .nullish()
      .describe('Id that the client made. Either this member or `objectId` is required.'),
    objectId: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,64}$/, 'expected the id of an installation')
      .nullish()
      .describe('objectId of the installation, instead of its installationId.'),
    events: z
      .array(
        z.strictObject({
          push: z
            .string()
            .regex(/^[A-Za-z0-9]{16}$/, 'expected the id of a push: 16 letters and digits')
            .describe('Value of the member `_push` of the message.'),
          type: z
            .enum(pushEventTypes, 'expected "received", "opened" or "dismissed"')
            .describe('What happened on the device.'),
          at: time.nullish().describe('Time of the event. Default: the time of the call.'),
        }),
      )
      .min(1, 'expected 1 to 100 events')
      .max(maxPushEvents, 'expected 1 to 100 events')
      .describe('1 to 100 events.'),
  })
  .refine(({ installationId, objectId }) => Boolean(installationId) !== Boolean(objectId), {
    path: ['installationId'],
    message: 'give either installationId or objectId',
  });

export type PushEventsBody = z.output<typeof pushEventsBody>;

type OrderWithData = { data: JsonObject; liveActivity?: LiveActivity };

/**
 * Returns the order of a push that nobody can correct any more, like `withPushId`. A push with a
 * member of this name keeps its member.
 */
export const withPossiblePushId = <T extends OrderWithData>(options: AppOptions, order: T) =>
  pushIdMember in order.data ? order : withPushId(options, order);

/**
 * Returns the order of a push of an app. With the option `reportOpens`, its messages contain the id
 * of the push, except messages to Live Activities, which have no custom members. Throws error 1 if
 * the push has a member with this name.
 */
export function withPushId<T extends OrderWithData>(
  { reportOpens }: AppOptions,
  order: T,
): T & { hasPushId?: true } {
  if (!reportOpens || order.liveActivity) return order;
  if (pushIdMember in order.data)
    throw refuse('invalidParameter', detail('pushIdMember', { name: pushIdMember }));
  return { ...order, hasPushId: true };
}
