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
 * State of a push as a coloured word. A push of a frozen app, and one that waits for an approval,
 * say so.
 */
export function StateBadge({ push }: { push: WithState }) {
  const { t } = useTranslation();
  const isFrozen = useFrozen(push);
  if (push.waitsForApproval) return <Badge tone="warn">{t('pushState.approval')}</Badge>;
  if (isFrozen) return <Badge tone="warn">{t('pushState.frozen')}</Badge>;
  return <Badge tone={tones[push.state]}>{t(`pushState.${push.state}`)}</Badge>;
}

/** Tells whether a push that would be sent now is held by a freeze of its app or of the service. */
function useFrozen({ appId, state }: WithState): boolean {
  const freezes = useFreezes().data?.results ?? [];
  if (state !== 'queued' && state !== 'sending') return false;
  return freezes.some((freeze) => freeze.appId === null || freeze.appId === appId);
}

/** Who sent a push: the caller of the admin API, else the service that it came from. */
export function Sender({ push }: { push: Pick<ListedPush, 'createdBy' | 'from-service'> }) {
  return <span translate="no">{push.createdBy ?? push['from-service']}</span>;
}

/** Link to the page of a push; its text describes the push. */
export function PushLink({
  appId,
  push,
}: {
  appId: string;
  push: Pick<ListedPush, 'msg' | 'objectId'>;
}) {
  const { t } = useTranslation();
  return (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: push.objectId }}>
      {titleOf(push, t)}
    </Link>
  );
}

/**
 * When a push begins: in the zone of the reader, or the time that each device has in its own zone.
 */
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

/** Number of recipients that have ended. */
export const endedOf = (totals: Totals): number => sum(totals, ['sent', ...failures, ...unsent]);

/**
 * Messages of the device channel that no device has acknowledged yet. They are `sent`, which of the
 * device channel means: they wait in the inbox of the device. `successes` counts acknowledged ones
 * only.
 */
export const unacknowledgedOf = ({
  outcomes,
  successes,
}: Pick<ListedPush, 'outcomes' | 'successes'>): number =>
  Math.max(0, (outcomes.sent ?? 0) - successes);

interface OutcomeBarProps {
  totals: Totals;
  devices: number;
  /** Sent messages that wait in the inbox of a device. */
  unacknowledged?: number;
}

/** Bar of the outcomes of a push, out of its recipients. */
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
        { tone: 'idle', value: Math.max(0, devices - ended), label: t('outcome.open') },
      ]}
    />
  );
}

/**
 * Returns the text that describes a push in a list: title and alert, else what the message consists
 * of.
 */
export function titleOf(
  push: Pick<ListedPush, 'msg' | 'objectId'>,
  t: (key: string) => string,
): string {
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
