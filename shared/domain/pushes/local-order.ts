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

/**
 * Local time of a push. `firstStart` and `lastStart` are when this time comes in the first and in
 * the last time zone.
 */
export interface LocalRequest {
  /** Local time as epoch milliseconds, as if it were UTC. */
  wallMs: number;
  firstStart: Date;
  lastStart: Date;
}

/**
 * Parses the `push_time` of a push with `push_time_local` (protocol/push.md#local-time). Returns
 * undefined for other pushes. Throws error 152 if the time is missing, has a time zone, or has
 * passed in all time zones.
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

/** Returns the local time for a push order. If the push has no expiry, it lives `usualSeconds`. */
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
