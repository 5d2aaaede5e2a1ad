import { z } from 'zod';
import type { InboxNotice } from '../../shared/db/tables/channel/channel.ts';
import type { SessionSeat } from '../../shared/db/tables/channel/channel-presence.ts';

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

export const parseInboxNotice = (payload: string): InboxNotice | undefined => parse(inboxNotice, payload);

export const parseSessionNotice = (payload: string): SessionSeat | undefined => parse(sessionNotice, payload);
