import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { Outcome } from '../../../../../shared/domain/outcome.ts';
import type { ListedPush } from '../../../../client/operations.ts';
import { useFreezes } from '../../api/operating.ts';
import { Badge, Bar, Time, type Tone } from '../../kit/data/values.tsx';
import { formatWall } from '../../text/format.ts';

const tones: Record<ListedPush['state'], Tone> = {
  scheduled: 'idle',
  queued: 'accent',
  sending: 'accent',
  paused: 'warn',
  done: 'good',
  failed: 'bad',
  cancelled: 'idle',
};

type WithState = Pick<ListedPush, 'appId' | 'state' | 'waitsForApproval'>;

/**
 * State of a push as a coloured label. Pushes of a frozen app and pushes that wait for approval
 * have their own labels.
 */
export function StateBadge({ push }: { push: WithState }) {
  const { t } = useTranslation();
  const isFrozen = useFrozen(push);
  if (push.waitsForApproval) return <Badge tone="warn">{t('pushState.approval')}</Badge>;
  if (isFrozen) return <Badge tone="warn">{t('pushState.frozen')}</Badge>;
  return <Badge tone={tones[push.state]}>{t(`pushState.${push.state}`)}</Badge>;
}

/** True if a freeze of the app or of the service stops a push that would otherwise be sent now. */
function useFrozen({ appId, state }: WithState): boolean {
  const freezes = useFreezes().data?.results ?? [];
  if (state !== 'queued' && state !== 'sending') return false;
  return freezes.some((freeze) => freeze.appId === null || freeze.appId === appId);
}

/** Values of `from-service`. */
export const sources = ['push', 'console', 'recurring'] as const;

/** Returns the source of a push in words. */
export function sourceOf(
  push: Pick<ListedPush, 'from-service'>,
  t: (key: string) => string,
): string {
  const source = sources.find((name) => name === push['from-service']);
  return source === undefined ? push['from-service'] : t(`pushSource.${source}`);
}

interface SenderProps {
  push: Pick<ListedPush, 'createdBy' | 'recurring'>;
  /** True in a list, which has no space for names and keys. */
  isBrief?: boolean;
}

/**
 * Sender of a push: the caller of the admin API, a recurring push and who set it up, or the app
 * itself. The record does not say with which of its keys the app sent it.
 */
export function Sender({ push, isBrief = false }: SenderProps) {
  const { t } = useTranslation();
  const { createdBy, recurring } = push;
  if (createdBy === null) return <>{t(isBrief ? 'push.byAppBrief' : 'push.byApp')}</>;
  if (recurring !== null && isBrief) return <>{t('push.byRecurringBrief')}</>;
  if (recurring !== null)
    return <>{t('push.byRecurring', { name: recurring.name, by: createdBy })}</>;
  return <span translate="no">{createdBy}</span>;
}

/** Link to the page of a push. Its text describes the push. */
export function PushLink({
  appId,
  push,
}: {
  appId: string;
  push: Pick<ListedPush, 'campaign' | 'msg' | 'objectId'>;
}) {
  const { t } = useTranslation();
  return (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: push.objectId }}>
      {titleOf(push, t)}
    </Link>
  );
}

/** Start of a push: a time in the reader's zone, or the local time of each device. */
export function StartTime({ push }: { push: Pick<ListedPush, 'push-time' | 'localTime'> }) {
  const { t } = useTranslation();
  if (push.localTime === null) return <Time at={push['push-time']} />;
  return <>{t('push.localTime', { time: formatWall(push.localTime) })}</>;
}

export type Totals = ListedPush['outcomes'];

const failures = ['invalid_token', 'failed'] as const;
const unsent = ['expired', 'capped', 'dropped'] as const;
const sum = (totals: Totals, names: readonly Outcome[]) =>
  names.reduce((all, name) => all + (totals[name] ?? 0), 0);

/** Returns the number of recipients that have ended. */
export const endedOf = (totals: Totals): number => sum(totals, ['sent', ...failures, ...unsent]);

/**
 * Returns the number of unacknowledged messages on the device channel. Their outcome is `sent`,
 * which means that they wait in the device's inbox. `successes` counts only acknowledged messages.
 */
export const unacknowledgedOf = ({
  outcomes,
  successes,
}: Pick<ListedPush, 'outcomes' | 'successes'>): number =>
  Math.max(0, (outcomes.sent ?? 0) - successes);

interface OutcomeBarProps {
  totals: Totals;
  devices: number;
  /** Sent messages that wait in a device's inbox. */
  unacknowledged?: number;
}

/** Bar of a push's outcomes compared with its recipients. */
export function OutcomeBar({ totals, devices, unacknowledged = 0 }: OutcomeBarProps) {
  const { t } = useTranslation();
  const ended = endedOf(totals);
  return (
    <Bar
      label={t('outcome.bar')}
      total={Math.max(devices, ended)}
      segments={[
        { tone: 'good', value: (totals.sent ?? 0) - unacknowledged, label: t('outcome.sent') },
        { tone: 'bad', value: sum(totals, failures), label: t('outcome.failures') },
        { tone: 'warn', value: sum(totals, unsent), label: t('outcome.unsent') },
        { tone: 'idle', value: unacknowledged, label: t('outcome.unacknowledged') },
        { tone: 'rest', value: Math.max(0, devices - ended), label: t('outcome.open') },
      ]}
    />
  );
}

/**
 * Returns a short description of a push for lists: its internal name, title and alert, or otherwise
 * the parts of the message.
 */
export function titleOf(
  push: Pick<ListedPush, 'campaign' | 'msg' | 'objectId'>,
  t: (key: string) => string,
): string {
  if (push.campaign) return push.campaign;
  const found = textsIn(push.msg);
  if (found.length > 0) return found.join(' · ');
  const byType = Object.values(push.msg).flatMap((part) => (isObject(part) ? textsIn(part) : []));
  if (byType.length > 0) return [...new Set(byType)].slice(0, 2).join(' / ');
  return t('push.silent');
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function textsIn(message: Record<string, unknown>): string[] {
  const { alert, title } = message;
  const inner = isObject(alert) ? [alert.title, alert.body] : [title, alert];
  return inner.filter((part): part is string => typeof part === 'string' && part !== '');
}
