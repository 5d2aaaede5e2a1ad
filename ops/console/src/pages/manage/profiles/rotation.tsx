import { useTranslation } from 'react-i18next';
import type { ProfileRotation } from '../../../../../client/operations.ts';
import { type ProfileId, useRotation, useRotationChange } from '../../../api/profiles.ts';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Badge, Time, type Tone } from '../../../kit/data/values.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './profiles.module.css';

const tones: Record<ProfileRotation['state'], Tone> = {
  staged: 'warn',
  checked: 'accent',
  canary: 'accent',
  promoted: 'good',
  rolled_back: 'bad',
};

/**
 * Last rotation of the credentials: replies of the gateway to the candidate, and buttons to promote
 * it or roll it back.
 */
export function Rotation({ id }: { id: ProfileId }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useRotation(id);
  return (
    <Panel title={t('rotation.title')} side={data && <Acts id={id} rotation={data} />}>
      {data ? (
        <Answers rotation={data} />
      ) : error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <Loading rows={4} />
      )}
    </Panel>
  );
}

function Acts({
  id,
  rotation: { state, mayRollBack },
}: {
  id: ProfileId;
  rotation: ProfileRotation;
}) {
  const { t } = useTranslation();
  const { act } = useRotationChange(id);
  return (
    <div className={styles.submit}>
      {act.error && <Failure error={act.error} />}
      {(state === 'checked' || state === 'canary') && (
        <Confirm
          trigger={t('rotation.promote')}
          title={t('rotation.promoteTitle')}
          action={t('rotation.promote')}
          variant="primary"
          disabled={act.isPending}
          onConfirm={() => act.mutate('promote')}
        >
          {t('rotation.promoteText')}
        </Confirm>
      )}
      {mayRollBack && (
        <Confirm
          trigger={t('rotation.rollback')}
          title={t('rotation.rollbackTitle')}
          action={t('rotation.rollback')}
          disabled={act.isPending}
          onConfirm={() => act.mutate('rollback')}
        >
          {t('rotation.rollbackText')}
        </Confirm>
      )}
    </div>
  );
}

function Answers({ rotation }: { rotation: ProfileRotation }) {
  const { t } = useTranslation();
  const {
    state,
    changedAt,
    reason,
    detail,
    batches,
    batchesSeen,
    asked,
    accepted,
    refused,
    worse,
    enough,
  } = rotation;
  const counted = (number: number, total: number) =>
    t('rotation.of', { number: formatCount(number), total: formatCount(total) });
  const recipients = {
    accepted: formatCount(accepted),
    asked: formatCount(asked),
    enough: formatCount(enough),
  };
  return (
    <Facts
      rows={[
        [
          t('rotation.state'),
          <Badge key="state" tone={tones[state]}>
            {t(`rotation.is.${state}`)}
          </Badge>,
        ],
        [t('rotation.since'), <Time key="since" at={changedAt} />],
        ...(state === 'rolled_back' && reason
          ? ([[t('rotation.why'), t(`rotation.reason.${reason}`)]] satisfies [string, string][])
          : []),
        ...(detail
          ? ([
              [
                t('overview.problem'),
                <span key="detail" translate="no">
                  {detail}
                </span>,
              ],
            ] satisfies [string, React.ReactNode][])
          : []),
        [t('rotation.batches'), counted(batches, batchesSeen)],
        [t('rotation.accepted'), t('rotation.enough', recipients)],
        [t('rotation.refused'), formatCount(refused)],
        [t('rotation.worse'), formatCount(worse)],
      ]}
    />
  );
}
