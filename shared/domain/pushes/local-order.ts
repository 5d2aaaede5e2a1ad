import { refuse } from '../errors/errors.ts';
import type { JsonObject } from '../json.ts';
import { detail } from '../texts/texts.ts';
import {
  firstStartMs,
  type LocalTime,
  lastStartMs,
  lateMs,
  localTimeText,
  parseLocalTime,
} from './local-time.ts';

/** Time of a push at local time, with its first and last start anywhere. */
export interface LocalRequest {
  /** Epoch milliseconds as if the zone were UTC. */
  wallMs: number;
  firstStart: Date;
  lastStart: Date;
}

/**
 * Reads the `push_time` of a push with `push_time_local` (protocol/push.md#local-time); undefined
 * for any other push. Throws 152 for a time that is missing, has a zone, or is past in every zone.
 */
export function localRequestOf(body: JsonObject, nowMs: number): LocalRequest | undefined {
  if (body.push_time_local !== true) {
    if (typeof body.default_time_zone === 'string')
      throw refuse('invalidParameter', detail('defaultZoneAlone'));
    return undefined;
  }
  const wallMs = typeof body.push_time === 'string' ? parseLocalTime(body.push_time) : undefined;
  if (wallMs === undefined) throw refuse('invalidPushTime', detail('localTimeNeeded'));
  const lastStart = new Date(lastStartMs(wallMs));
  if (lastStart.getTime() < nowMs - lateMs)
    throw refuse('invalidPushTime', detail('localTimePast'));
  return { wallMs, firstStart: new Date(firstStartMs(wallMs)), lastStart };
}

/** Returns the local time of a push order; without an expiry it lives so many seconds. */
export const localTimeOf = (
  { wallMs }: LocalRequest,
  sent: {
    default_time_zone?: string | null | undefined;
    expiration_time?: Date | null | undefined;
    expiration_interval?: number | null | undefined;
  },
  usualSeconds: number,
): LocalTime => ({
  time: localTimeText(wallMs),
  zone: sent.default_time_zone ?? null,
  lifeSeconds: sent.expiration_time ? null : (sent.expiration_interval ?? usualSeconds),
});
