import type { AppOptions } from '../apps/app.ts';
import { noQuietHours } from './quiet-hours.ts';

/**
 * Kinds of pushes; `transactional` ones pass the limits that protect people from too many pushes.
 */
export const pushKinds = ['marketing', 'transactional'] as const;

/**
 * Kind of a push with its own limit (protocol/push.md#pushes-per-device-and-day). Absent members
 * are the usual ones.
 */
export interface PushClass {
  kind?: 'transactional';
  /** Pushes per device and day in place of the app's; 0 for no limit. */
  deviceCap?: number;
  /** Quiet hours in place of the app's (protocol/push.md#quiet-hours); `off` for none. */
  quietHours?: string;
}

/** Returns the class that a body names. */
export const pushClassOf = (body: {
  kind?: (typeof pushKinds)[number] | null | undefined;
  device_cap?: number | null | undefined;
  quiet_hours?: string | null | undefined;
}): PushClass => ({
  ...(body.kind === 'transactional' ? { kind: 'transactional' } : {}),
  ...(typeof body.device_cap === 'number' ? { deviceCap: body.device_cap } : {}),
  ...(typeof body.quiet_hours === 'string' ? { quietHours: body.quiet_hours } : {}),
});

/** Push as far as its class and its limits go. */
interface LimitedPush extends PushClass {
  /** Outcomes of the recipients of a redrive. */
  redrive?: { outcomes: readonly string[] };
}

/**
 * Returns the pushes that a device may get in a day, this one included; null for no limit. A
 * redrive counts as the push before it, except for recipients that were beyond a limit.
 */
export function deviceCapOf(
  { kind, deviceCap, redrive }: LimitedPush,
  { devicePushesPerDay }: Pick<AppOptions, 'devicePushesPerDay'>,
): number | null {
  if (kind === 'transactional' || (redrive && !redrive.outcomes.includes('capped'))) return null;
  return (deviceCap ?? devicePushesPerDay) || null;
}

/**
 * Returns the quiet hours that a push keeps; null for none. Transactional pushes keep none
 * (protocol/push.md#quiet-hours).
 */
export function quietHoursOf(
  { kind, quietHours }: PushClass,
  options: Pick<AppOptions, 'quietHours'>,
): string | null {
  if (kind === 'transactional' || quietHours === noQuietHours) return null;
  return quietHours ?? options.quietHours;
}
