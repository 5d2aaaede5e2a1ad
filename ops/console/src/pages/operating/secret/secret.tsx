import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { SecretState } from '../../../../../client/operations.ts';
import { useSecret, useSecretCount, useSecretRotation } from '../../../api/operating.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Bar, Time } from '../../../kit/data/values.tsx';
import { Facts, Notice, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './secret.module.css';

type Key = SecretState['keys'][number];

/**
 * Keys by id: which key encrypts, the number of values per key, and whether a key may be removed.
 */
export function Keys({ state: { keys } }: { state: SecretState }) {
  const { t } = useTranslation();
  const columns: Column<Key>[] = [
    { key: 'id', title: t('secret.key'), cell: ({ id }) => <code>{id}</code> },
    {
      key: 'use',
      title: t('secret.use'),
      isWide: true,
      cell: ({ isFirst }) => t(isFirst ? 'secret.encrypts' : 'secret.decrypts'),
    },
    {
      key: 'values',
      title: t('secret.valuesOf'),
      isNumber: true,
      cell: ({ values }) => sumOf(values),
    },
    { key: 'removal', title: t('secret.removal'), cell: (key) => <Removal of={key} /> },
  ];
  return (
    <>
      <Table label={t('secret.keys')} columns={columns} rows={keys} keyOf={({ id }) => id} />
      {keys.length === 1 && <p className={styles.note}>{t('secret.oneKey')}</p>}
    </>
  );
}

const sumOf = (values: Key['values']): string =>
  values === null ? '–' : formatCount(Object.values(values).reduce((sum, n) => sum + n, 0));

function Removal({ of: { isFirst, mayBeRemoved } }: { of: Key }) {
  const { t } = useTranslation();
  if (isFirst) return '–';
  return (
    <Badge tone={mayBeRemoved ? 'good' : 'idle'}>
      {t(mayBeRemoved ? 'secret.mayGo' : 'secret.needed')}
    </Badge>
  );
}

/** Numbers of values by database column and key, from the last count. */
export function Values({ state: { keys, other, countedAt } }: { state: SecretState }) {
  const { t } = useTranslation();
  if (countedAt === null)
    return (
      <Empty title={t('secret.notCounted')}>
        <p>{t('secret.notCountedHint')}</p>
      </Empty>
    );
  const groups = [
    ...keys.map(({ id, values }) => ({ id, title: id, values: values ?? {} })),
    { id: 'other', title: t('secret.other'), values: other ?? {} },
  ];
  const columnNames = [...new Set(groups.flatMap(({ values }) => Object.keys(values)))].sort();
  const columns: Column<string>[] = [
    { key: 'place', title: t('secret.place'), isWide: true, cell: (place) => <code>{place}</code> },
    ...groups.map(({ id, title, values }) => ({
      key: id,
      title,
      isNumber: true,
      cell: (place: string) => formatCount(values[place] ?? 0),
    })),
  ];
  return (
    <>
      <Table
        label={t('secret.values')}
        columns={columns}
        rows={columnNames}
        keyOf={(place) => place}
      />
      <p className={styles.note}>
        {t('secret.countedAt')} <Time at={countedAt} />
      </p>
    </>
  );
}

/**
 * Keys of CARILLON_SECRET, the values encrypted with each key, and the rotation to the first key.
 */
export function Secret() {
  const { t } = useTranslation();
  const { data, error, refetch } = useSecret();
  const count = useSecretCount();
  const rotation = useSecretRotation();
  const isOwner = useMay('owner');
  const state = data && newerOf(data, count.data);
  const failure = rotation.error ?? count.error;
  return (
    <>
      <PageHeader
        title={t('secret.title')}
        side={
          state &&
          isOwner && (
            <>
              <Button isBusy={count.isPending} onClick={() => count.mutate()}>
                {t('secret.count')}
              </Button>
              <Rotate state={state} isBusy={rotation.isPending} rotate={() => rotation.mutate()} />
            </>
          )
        }
      />
      {failure && <Failure error={failure} />}
      {state ? (
        <Parts state={state} />
      ) : error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <Loading rows={6} />
      )}
      <Commands request={requestOf('getSecretRotation')} command="secret status" />
    </>
  );
}

/** Returns the state with the requested counts, unless the rotation counted more recently. */
function newerOf(state: SecretState, counted: SecretState | undefined): SecretState {
  if (!counted?.countedAt || (state.countedAt !== null && state.countedAt > counted.countedAt))
    return state;
  const { keys, other, left, countedAt } = counted;
  return { ...state, keys, other, left, countedAt };
}

function Rotate({
  state,
  isBusy,
  rotate,
}: {
  state: SecretState;
  isBusy: boolean;
  rotate: () => void;
}) {
  const { t } = useTranslation();
  const { keys, rotation } = state;
  return (
    <Confirm
      trigger={t('secret.rotate')}
      title={t('secret.rotateTitle', { key: keys[0]?.id })}
      action={t('secret.rotate')}
      variant="primary"
      // With a single key there is nothing to rotate.
      disabled={isBusy || keys.length === 1 || rotation?.state === 'running'}
      onConfirm={rotate}
    >
      {t('secret.rotateText')}
    </Confirm>
  );
}

function Parts({ state }: { state: SecretState }) {
  const { t } = useTranslation();
  return (
    <>
      {state.mismatches.map(({ kind, host, pid, problem }) => (
        <Notice key={`${kind} ${host} ${pid}`} variant="warn">
          {t(`secret.problem.${problem}`, {
            process: `${t(`processKind.${kind}`)} ${host} ${pid}`,
          })}
        </Notice>
      ))}
      <Panel title={t('secret.keys')}>
        <Keys state={state} />
      </Panel>
      <Panel title={t('secret.rotation')}>
        <Progress state={state} />
      </Panel>
      <Panel title={t('secret.values')}>
        <Values state={state} />
      </Panel>
    </>
  );
}

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
