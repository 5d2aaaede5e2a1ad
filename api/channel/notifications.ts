import { z } from 'zod';
import type { InboxNotification } from '../../shared/db/tables/channel/messages.ts';
import type { DeviceSession } from '../../shared/db/tables/channel/sessions.ts';

const inboxNotice = z.object({ appId: z.string(), fromId: z.number(), toId: z.number() });
const sessionNotice = z.object({ appId: z.string(), installation: z.number(), sessionId: z.number() });

/** Anybody with the database can notify: what is no notice is passed over. */
function parse<T>(shape: z.ZodType<T>, payload: string): T | undefined {
  try {
    return shape.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}

export const parseInboxNotification = (payload: string): InboxNotification | undefined =>
  parse(inboxNotice, payload);

export const parseSessionNotification = (payload: string): DeviceSession | undefined =>
  parse(sessionNotice, payload);
