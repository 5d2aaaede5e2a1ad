import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { useDebounced } from '../../api/apps.ts';
import { isOpenPush, type Replacement, useRecall, useRecallForecast } from '../../api/push.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Checkbox, TextField } from '../../kit/controls/field.tsx';
import { Failure, Loading } from '../../kit/states.tsx';
import { connectorName } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';
import styles from './push.module.css';

interface OfPush {
  appId: string;
  push: PushDetail;
}

type Counts = NonNullable<PushDetail['recall']>['connectors'];
const kinds = ['recalled', 'replaced', 'impossible'] as const;

/** Number of devices above which a recall requires that the number is typed. */
const typedFrom = 10_000;

/** Number of devices whose message is recalled or replaced. */
const reachedIn = (counts: Counts): number =>
  Object.values(counts).reduce(
    (sum, { recalled = 0, replaced = 0 } = {}) => sum + recalled + replaced,
    0,
  );

/**
 * Recalls a push that is not sending any more, after a dry run. Renders nothing for other pushes,
 * and for people who may not control the push.
 */
export function Recall({ appId, push }: OfPush) {
  const { t } = useTranslation();
  const { name } = useOperator();
  const mayControl = useMay(name === push.createdBy ? 'sender' : 'operator');
  const [isRequested, setRequested] = useState(false);
  const [isReplacing, setReplacing] = useState(false);
  const [text, setText] = useState('');
  const [title, setTitle] = useState('');
  const ofPush = { appId, pushId: push.objectId };
  const typed = JSON.stringify({ alert: text, ...(title === '' ? {} : { title }) });
  const counted = useDebounced(typed);
  const replacement: Replacement = isReplacing ? { data: JSON.parse(counted) } : undefined;
  const isComplete = !isReplacing || (text.trim() !== '' && typed === counted);
  const forecast = useRecallForecast(ofPush, replacement, isRequested && isComplete);
  const recall = useRecall(ofPush);
  if (isOpenPush(push) || push.recallOf !== null || push.liveActivity || !mayControl) return null;
  if (push.recall?.status === 'in-queue' || (push.outcomes.sent ?? 0) === 0) return null;
  const { data, error, isPlaceholderData } = forecast;
  const devices = data ? reachedIn(data.connectors) : 0;
  return (
    <>
      {recall.error && <Failure error={recall.error} />}
      <Confirm
        triggerVariant="plain"
        trigger={t('recall.title')}
        title={t('recall.title')}
        action={t('recall.now', { count: devices, devices: formatCount(devices) })}
        typed={devices > typedFrom ? String(devices) : undefined}
        disabled={recall.isPending}
        isBlocked={devices === 0 || isPlaceholderData || !isComplete || error !== null}
        onOpen={setRequested}
        onConfirm={() => recall.mutate(replacement)}
      >
        <p>{t('recall.text')}</p>
        <Checkbox
          label={t('recall.replace')}
          hint={t('recall.replaceHint')}
          checked={isReplacing}
          onChange={(event) => setReplacing(event.target.checked)}
        />
        {isReplacing && (
          <>
            <TextField
              label={t('recall.newTitle')}
              value={title}
              onChange={(event) => setTitle(event.target.value)}
            />
            <TextField
              label={t('recall.newText')}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </>
        )}
        {!isComplete ? null : error ? (
          <Failure error={error} />
        ) : data ? (
          <div aria-live="polite">
            <Numbers counts={data.connectors} />
          </div>
        ) : (
          <Loading />
        )}
      </Confirm>
    </>
  );
}

/** Devices by gateway and by what happens to their message. */
function Numbers({ counts }: { counts: Counts }) {
  const { t } = useTranslation();
  const lines = Object.entries(counts).flatMap(([connector, own]) =>
    kinds.flatMap((kind) => {
      const devices = own?.[kind] ?? 0;
      const values = { gateway: connectorName(connector), devices: formatCount(devices) };
      return devices > 0 ? [t(`recall.${kind}`, values)] : [];
    }),
  );
  if (lines.length === 0) return <p>{t('recall.nobody')}</p>;
  return (
    <ul>
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

/**
 * The newest recall of a push with its numbers, and the recalled push of a recall. Renders nothing
 * for other pushes.
 */
export function RecallState({ appId, push }: OfPush) {
  const { t } = useTranslation();
  const { recall, recallOf } = push;
  const linkTo = (pushId: string) => (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId }}>
      <code>{pushId}</code>
    </Link>
  );
  if (recallOf !== null)
    return (
      <p className={styles.redrives}>
        {t('recall.of')} {linkTo(recallOf)}
      </p>
    );
  if (!recall) return null;
  return (
    <section aria-label={t('recall.title')} aria-live="polite">
      <p className={styles.redrives}>
        {t(`recall.status.${recall.status}`)} {linkTo(recall.objectId)}
      </p>
      <Numbers counts={recall.connectors} />
    </section>
  );
}
