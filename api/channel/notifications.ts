import { z } from 'zod';
import type { GroupNotification, InboxNotification } from '../../shared/db/tables/channel/messages.ts';
import type { DeviceSession } from '../../shared/db/tables/channel/session.ts';

const inboxNotification = z.union([
  z.object({ appId: z.string(), groupId: z.number() }),
  z.object({ appId: z.string(), fromId: z.number(), toId: z.number() }),
]);
const sessionNotification = z.object({ appId: z.string(), installation: z.number(), sessionId: z.number() });

/** Parses the payload of a NOTIFY. Any database client can send one, so an invalid payload returns undefined. */
function parse<T>(shape: z.ZodType<T>, payload: string): T | undefined {
  try {
    return shape.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}

export const parseInboxNotification = (payload: string): InboxNotification | GroupNotification | undefined =>
  parse(inboxNotification, payload);

export const parseSessionNotification = (payload: string): DeviceSession | undefined =>
  parse(sessionNotification, payload);
