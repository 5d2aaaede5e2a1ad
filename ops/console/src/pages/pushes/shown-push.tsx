import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { ListedPush } from '../../../../../api/replies/admin/types.ts';
import { Badge, type Tone } from '../../kit/data/badge.tsx';
import { Bar } from '../../kit/data/bar.tsx';

const tones: Record<ListedPush['state'], Tone> = {
  scheduled: 'idle',
  queued: 'accent',
  sending: 'accent',
  paused: 'warn',
  done: 'good',
  failed: 'bad',
  cancelled: 'idle',
};

/** State of a push as a coloured word. */
export function StateBadge({ state }: { state: ListedPush['state'] }) {
  const { t } = useTranslation();
  return <Badge tone={tones[state]}>{t(`pushState.${state}`)}</Badge>;
}

/** Link to the page of a push; its text describes the push. */
export function PushLink({ appId, push }: { appId: string; push: Pick<ListedPush, 'msg' | 'objectId'> }) {
  const { t } = useTranslation();
  return (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: push.objectId }}>
      {titleOf(push, t)}
    </Link>
  );
}

export type Totals = ListedPush['outcomes'];

const failures = ['invalid_token', 'failed'] as const;
const unsent = ['expired', 'capped', 'dropped'] as const;
const sum = (totals: Totals, names: readonly (keyof Totals)[]) =>
  names.reduce((all, name) => all + (totals[name] ?? 0), 0);

/** Number of recipients that have ended. */
export const endedOf = (totals: Totals): number => sum(totals, ['sent', ...failures, ...unsent]);

/** Bar of the outcomes of a push, out of its recipients. */
export function OutcomeBar({ totals, devices }: { totals: Totals; devices: number }) {
  const { t } = useTranslation();
  const ended = endedOf(totals);
  return (
    <Bar
      label={t('outcome.bar')}
      total={Math.max(devices, ended)}
      segments={[
        { tone: 'good', value: totals.sent ?? 0, label: t('outcome.sent') },
        { tone: 'bad', value: sum(totals, failures), label: t('outcome.failures') },
        { tone: 'warn', value: sum(totals, unsent), label: t('outcome.unsent') },
        { tone: 'idle', value: Math.max(0, devices - ended), label: t('outcome.open') },
      ]}
    />
  );
}

/** Returns the text that describes a push in a list: title and alert, else what the message consists of. */
export function titleOf(push: Pick<ListedPush, 'msg' | 'objectId'>, t: (key: string) => string): string {
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
