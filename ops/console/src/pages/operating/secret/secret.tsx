import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { SecretState } from '../../../../../client/operations.ts';
import { useSecret, useSecretCount, useSecretRotation } from '../../../api/operating.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Notice } from '../../../kit/notice.tsx';
import { PageHeader, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { Keys } from './keys.tsx';
import { Progress } from './progress.tsx';
import { Values } from './values.tsx';

/** Keys of CARILLON_SECRET, what is encrypted under each, and the rotation to the first one. */
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

/** Returns the state with the counts of now, unless the rotation has counted after them. */
function newerOf(state: SecretState, counted: SecretState | undefined): SecretState {
  if (!counted?.countedAt || (state.countedAt !== null && state.countedAt > counted.countedAt)) return state;
  const { keys, other, left, countedAt } = counted;
  return { ...state, keys, other, left, countedAt };
}

function Rotate({ state, isBusy, rotate }: { state: SecretState; isBusy: boolean; rotate: () => void }) {
  const { t } = useTranslation();
  const { keys, rotation } = state;
  return (
    <Confirm
      trigger={t('secret.rotate')}
      title={t('secret.rotateTitle', { key: keys[0]?.id })}
      action={t('secret.rotate')}
      look="primary"
      // With one key nothing is under another.
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
        <Notice key={`${kind} ${host} ${pid}`} look="warn">
          {t(`secret.problem.${problem}`, { process: `${t(`processKind.${kind}`)} ${host} ${pid}` })}
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
