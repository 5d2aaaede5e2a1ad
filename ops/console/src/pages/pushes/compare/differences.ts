import type { PushDetail, PushProgress } from '../../../../../client/operations.ts';

type Totals = PushDetail['outcomes'];

/** Outcomes of one connector in two pushes. */
export interface ConnectorChange {
  connector: string;
  a: Share;
  b: Share;
  /**
   * True if clearly more recipients failed in the second push. Null if one of the pushes had too
   * few recipients.
   */
  isWorse: boolean | null;
}

/** Recipients that have ended, and the number of failures among them. */
export interface Share {
  ended: number;
  failed: number;
}

/** Minimum rise of the failure share that is highlighted: one percentage point. */
const markedRise = 0.01;
/** With fewer recipients, no comparison is possible. */
const fewRecipients = 20;

const shareOf = (totals: Totals = {}): Share => ({
  ended: Object.values(totals).reduce((sum, n) => sum + n, 0),
  failed: (totals.failed ?? 0) + (totals.invalid_token ?? 0),
});

const ratio = ({ ended, failed }: Share): number => (ended === 0 ? 0 : failed / ended);

/**
 * True if clearly more recipients failed in `b` than in `a`. Null if one of them has too few ended
 * recipients.
 */
function hasWorsened(a: Share, b: Share): boolean | null {
  if (Math.min(a.ended, b.ended) < fewRecipients) return null;
  return ratio(b) - ratio(a) >= markedRise;
}

/** Returns the outcomes of two pushes by connector. Connectors that got worse come first. */
export function connectorChanges(
  a: PushProgress['connectors'],
  b: PushProgress['connectors'],
): ConnectorChange[] {
  const [before, after] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  const changes = [...new Set([...before.keys(), ...after.keys()])].map((connector) => {
    const [left, right] = [shareOf(before.get(connector)), shareOf(after.get(connector))];
    return { connector, a: left, b: right, isWorse: hasWorsened(left, right) };
  });
  return changes.sort(
    (one, other) => Number(other.isWorse) - Number(one.isWorse) || other.b.ended - one.b.ended,
  );
}

type Timed = Pick<PushDetail, 'createdAt' | 'firstSentAt' | 'finishedAt' | 'push-time'>;

/**
 * Returns the time from the start of a push to its first request and to its end, in milliseconds.
 * Null if unknown.
 */
export function timesOf(push: Timed): { firstSendMs: number | null; totalMs: number | null } {
  const dueMs = Math.max(Date.parse(push.createdAt), Date.parse(push['push-time']));
  const since = (at: string | null) => (at === null ? null : Math.max(0, Date.parse(at) - dueMs));
  return { firstSendMs: since(push.firstSentAt), totalMs: since(push.finishedAt) };
}

/** Minimum growth factor of a time that is highlighted, and minimum time. */
const markedGrowth = 2;
const markedMs = 1000;

/** True if a time has clearly grown. */
export const isSlower = (a: number | null, b: number | null): boolean =>
  a !== null && b !== null && b >= markedMs && b > a * markedGrowth;

/** Push in a comparison. */
export interface Compared {
  push: PushDetail;
  progress: PushProgress;
}
