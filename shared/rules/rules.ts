import type { PushOrder } from '../domain/pushes/push.ts';
import { approval, massLimit } from './admission.ts';
import { languages, variables } from './content.ts';
import { localTime } from './local-time.ts';
import { quietHours } from './quiet-hours.ts';
import { deviceCap, lastActiveDevice, recall, redrive } from './recipients.ts';
import type { PushRule, Rule, RuledPush } from './rule.ts';

/**
 * The rules of pushes, in the order in which they are applied. Planning, the dry run and the
 * explanation of one device use the same order.
 */
const pushRules: readonly PushRule[] = [
  massLimit,
  approval,
  lastActiveDevice,
  redrive,
  recall,
  localTime,
  quietHours,
  // After the quiet hours: a recipient that expires during its quiet hours must not use up its
  // daily cap.
  deviceCap,
  languages,
  variables,
];

/** Returns the rules that a push uses. Most pushes use no rule. */
export const rulesOf = (push: RuledPush): Rule[] =>
  pushRules.map((rule) => rule.of(push)).filter((rule) => rule !== undefined);

/** Returns whether a rule changes what planning writes for a page. */
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
