import type { AppOptions } from '../apps/app.ts';
import type { MessageClass } from './message-classes.ts';
import { noQuietHours } from './quiet-hours.ts';

/**
 * Kinds of pushes. The limits that protect people from too many pushes do not apply to
 * `transactional` pushes.
 */
export const pushKinds = ['marketing', 'transactional'] as const;

/**
 * Kind of a push and its own limits (protocol/push.md#pushes-per-device-and-day). Absent members
 * have their defaults.
 */
export interface PushClass {
  kind?: 'transactional';
  /** Maximum pushes per device and day; overrides the app's limit. 0 means no limit. */
  deviceCap?: number;
  /**
   * Quiet hours; override the app's quiet hours (protocol/push.md#quiet-hours). `off` means none.
   */
  quietHours?: string;
  /** Portable message class (protocol/push.md#message-classes). */
  messageClass?: MessageClass;
}

/** Returns the kind and limits in a body. */
export const pushClassOf = (body: {
  kind?: (typeof pushKinds)[number] | null | undefined;
  device_cap?: number | null | undefined;
  quiet_hours?: string | null | undefined;
  class?: MessageClass | null | undefined;
}): PushClass => ({
  ...(body.kind === 'transactional' ? { kind: 'transactional' } : {}),
  ...(typeof body.device_cap === 'number' ? { deviceCap: body.device_cap } : {}),
  ...(typeof body.quiet_hours === 'string' ? { quietHours: body.quiet_hours } : {}),
  ...(body.class ? { messageClass: body.class } : {}),
});

/** The part of a push that decides its limits. */
interface LimitedPush extends PushClass {
  /** Outcomes of the recipients that a redrive sends to again. */
  redrive?: { outcomes: readonly string[] };
  /** Present if the push recalls an earlier push. */
  recall?: object;
}

/**
 * Returns how many pushes a device may get per day, including this push; null if unlimited. A
 * redrive counts as part of the earlier push, except for recipients that exceeded a limit. A recall
 * always counts as part of the earlier push.
 */
export function deviceCapOf(
  { kind, deviceCap, redrive, recall }: LimitedPush,
  { devicePushesPerDay }: Pick<AppOptions, 'devicePushesPerDay'>,
): number | null {
  if (kind === 'transactional' || recall) return null;
  if (redrive && !redrive.outcomes.includes('capped')) return null;
  return (deviceCap ?? devicePushesPerDay) || null;
}

/**
 * Returns the quiet hours of a push; null if it has none. Transactional pushes and recalls
 * have none (protocol/push.md#quiet-hours).
 */
export function quietHoursOf(
  { kind, quietHours, recall }: LimitedPush,
  options: Pick<AppOptions, 'quietHours'>,
): string | null {
  if (kind === 'transactional' || recall || quietHours === noQuietHours) return null;
  return quietHours ?? options.quietHours;
}
