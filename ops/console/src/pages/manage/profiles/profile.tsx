import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { ProfileCheck } from '../../../../../client/operations.ts';
import {
  type ProfileId,
  useMeta,
  useProfile,
  useProfileChange,
  useProfileCheck,
  useProfiles,
} from '../../../api/profiles.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Badge, Marked, Reason } from '../../../kit/data/values.tsx';
import { PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { connectorName, useRemedyText } from '../../../text/explanation.ts';
import { formatCount, formatDuration } from '../../../text/format.ts';
import { CredentialsForm } from './credentials-form.tsx';
import styles from './profiles.module.css';
import { Rotation } from './rotation.tsx';
import { State } from './state.tsx';

/** Button that checks whether the gateway accepts the credentials. No message is sent. */
export function Check({ id }: { id: ProfileId }) {
  const { t } = useTranslation();
  const check = useProfileCheck(id);
  return (
    <Panel
      title={t('profile.check')}
      side={
        <Button isBusy={check.isPending} onClick={() => check.mutate()}>
          {t('profile.checkNow')}
        </Button>
      }
    >
      <div aria-live="polite" className={styles.check}>
        {check.error ? (
          <Failure error={check.error} />
        ) : check.isPending ? (
          t('profile.checking')
        ) : check.data ? (
          <Answer answer={check.data} />
        ) : (
          <span className={styles.source}>{t('profile.checkHint')}</span>
        )}
      </div>
    </Panel>
  );
}

function Answer({
  answer: { ok, gave, tookMs, sentence, meaning, remedy },
}: {
  answer: ProfileCheck;
}) {
  const { t } = useTranslation();
  const remedyText = useRemedyText();
  return (
    <>
      <p>
        <Badge tone={ok ? 'good' : 'bad'}>
          {t(ok ? 'profileCheck.ok' : 'profileCheck.failed')}
        </Badge>{' '}
        {ok ? (
          t(`profileCheck.${gave ?? 'connection'}`)
        ) : (
          <Reason reason={sentence} meaning={meaning} />
        )}{' '}
        <span className={styles.source}>{formatDuration(tookMs)}</span>
      </p>
      {remedy && (
        <p>
          <Marked text={remedyText(remedy)} />
        </p>
      )}
    </>
  );
}

const route = getRouteApi('/apps/$appId/profiles/$connector/$name');

/**
 * Page of a push profile: its state and the form for its credentials. For a new profile, only the
 * form.
 */
export function Profile() {
  const id = route.useParams();
  const { appId, connector, name } = id;
  const profiles = useProfiles(appId);
  const meta = useMeta();
  const mayChange = useMay('operator');
  const { t } = useTranslation();
  const described = meta.data?.connectors.find((one) => one.id === connector);
  const stored = profiles.data?.results.find(
    (one) => one.connector === connector && one.name === name,
  );
  const isStored = stored !== undefined;
  const detail = useProfile(id, isStored && mayChange);
  const isReady = profiles.data !== undefined && meta.data !== undefined;
  const error = profiles.error ?? meta.error;
  return (
    <>
      <PageHeader
        title={`${connectorName(connector)} · ${name}`}
        side={isStored && mayChange && <Delete id={id} devices={detail.data?.devices} />}
      />
      {error && !isReady ? (
        <Failure error={error} />
      ) : !isReady ? (
        <Loading rows={8} />
      ) : !described?.credentials ? (
        <Empty title={t('profile.noCredentials')} />
      ) : (
        <>
          {stored && <State profile={stored} appId={appId} detail={detail.data} />}
          {detail.error && <Failure error={detail.error} retry={() => void detail.refetch()} />}
          {stored && mayChange && <Check id={id} />}
          {detail.data?.rotation && <Rotation id={id} />}
          {mayChange && !(isStored && detail.isPending) && (
            <CredentialsForm
              key={`${connector}/${name}`}
              id={id}
              connector={described}
              members={detail.data?.members ?? {}}
              isStored={isStored}
            />
          )}
        </>
      )}
      <Commands
        request={requestOf('getProfile', { path: { ...id } })}
        command={`profile put ${appId} ${connector} credentials.json`}
      />
    </>
  );
}

/** Number of devices above which a deletion requires that the number is typed. */
const typedFrom = 10_000;

function Delete({ id, devices }: { id: ProfileId; devices: number | undefined }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { remove } = useProfileChange(id);
  const { appId } = id;
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <Confirm
        trigger={t('profile.delete')}
        title={t('profile.deleteTitle', { name: `${connectorName(id.connector)} · ${id.name}` })}
        action={t('profile.deleteNow')}
        typed={devices !== undefined && devices > typedFrom ? String(devices) : undefined}
        disabled={remove.isPending}
        onConfirm={() =>
          remove.mutate(undefined, {
            onSuccess: () => void navigate({ to: '/apps/$appId/profiles', params: { appId } }),
          })
        }
      >
        {devices === undefined
          ? t('profile.deleteText')
          : t('profile.deleteDevices', { devices: formatCount(devices) })}
      </Confirm>
    </>
  );
}
