import { useTranslation } from 'react-i18next';
import type { SecretState } from '../../../../../client/operations.ts';
import { Badge, Bar, Time } from '../../../kit/data/values.tsx';
import { Facts } from '../../../kit/panel.tsx';
import { Empty } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './secret.module.css';

/** Last rotation: its progress, remaining values, and which old keys may be removed. */
export function Progress({ state }: { state: SecretState }) {
  const { t } = useTranslation();
  const { rotation } = state;
  if (rotation === null) return <Empty title={t('secret.none')} />;
  return (
    <>
      <Facts
        rows={[
          [t('pushes.state'), <State key="state" state={state} />],
          [t('secret.changed'), <Changed key="changed" rotation={rotation} />],
          [t('secret.requested'), <Time key="requested" at={rotation.requestedAt} />],
          [t('secret.finished'), <Time key="finished" at={rotation.finishedAt} />],
          [t('secret.pass'), formatCount(rotation.pass)],
          ...unreadableRows(rotation).map(([place, n]): [string, string] => [
            t('secret.unreadable', { place }),
            formatCount(n),
          ]),
        ]}
      />
      <Advice state={state} />
    </>
  );
}

type Rotation = NonNullable<SecretState['rotation']>;

const unreadableRows = ({ unreadable }: Rotation) =>
  Object.entries(unreadable).filter(([, n]) => n > 0);

function State({ state: { rotation, left } }: { state: SecretState }) {
  const { t } = useTranslation();
  if (rotation?.state === 'running') return <Badge tone="accent">{t('secret.running')}</Badge>;
  const isWhole = left === 0;
  return (
    <Badge tone={isWhole ? 'good' : 'warn'}>
      {t(isWhole ? 'secret.done' : 'secret.endedWithRest')}
    </Badge>
  );
}

function Changed({ rotation: { changed, expected } }: { rotation: Rotation }) {
  const { t } = useTranslation();
  // The rotation may change more values than expected, because values that are saved meanwhile are
  // changed too.
  const all = Math.max(changed, expected);
  return (
    <span className={styles.changed}>
      {t('secret.of', { changed: formatCount(changed), all: formatCount(all) })}
      <Bar
        label={t('secret.changed')}
        total={all}
        segments={[{ tone: 'good', value: changed, label: t('secret.changed') }]}
      />
    </span>
  );
}

/** Recommended next step. */
function Advice({ state: { keys, left, rotation } }: { state: SecretState }) {
  const { t } = useTranslation();
  if (rotation?.state === 'running') return null;
  const removable = keys.filter(({ mayBeRemoved }) => mayBeRemoved).map(({ id }) => id);
  const text =
    removable.length > 0
      ? t('secret.removeNow', { keys: removable.join(', ') })
      : left === null || left === 0
        ? undefined
        : t('secret.left', { values: formatCount(left) });
  return text === undefined ? null : <p role="status">{text}</p>;
}
