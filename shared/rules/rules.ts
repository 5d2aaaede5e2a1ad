import type { PushOrder } from '../domain/pushes/push.ts';
import { approval } from './approval.ts';
import { deviceCap } from './device-cap.ts';
import { languages } from './languages.ts';
import { lastActiveDevice } from './last-active-device.ts';
import { localTime } from './local-time.ts';
import { massLimit } from './mass-limit.ts';
import { quietHours } from './quiet-hours.ts';
import { redrive } from './redrive.ts';
import type { PushRule, Rule, RuledPush } from './rule.ts';
import { variables } from './variables.ts';

/**
 * The rules of pushes, in the order in which planning, the dry run and the explanation of one
 * device apply them (README.md).
 */
const pushRules: readonly PushRule[] = [
  massLimit,
  approval,
  lastActiveDevice,
  redrive,
  localTime,
  quietHours,
  // After the quiet hours: a recipient that has expired costs nothing of its pushes of the day.
  deviceCap,
  languages,
  variables,
];

/** Returns the rules that a push uses; most pushes use no rule. */
export const rulesOf = (push: RuledPush): Rule[] =>
  pushRules.flatMap((rule) => rule.of(push) ?? []);

/** Tells whether a rule changes what is written of a page. */
export const changesPages = ({ start, group, claim, count, batches }: Rule): boolean =>
  [start, group, claim, count, batches].some((member) => member !== undefined);

/**
 * Returns the conditions by which rules narrow the targets of a push, each with the caller's text.
 */
export function narrowTargets(
  pushOrder: PushOrder,
  targets: () => string,
): { text: string; condition: string }[] {
  return pushRules.flatMap((rule) => rule.narrow?.(pushOrder, targets) ?? []);
}
