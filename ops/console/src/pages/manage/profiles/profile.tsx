import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { PushProfile } from '../../../../../../api/replies/admin/types.ts';
import { connectorName } from '../../../api/connectors.ts';
import {
  type ProfileId,
  profilePath,
  useMeta,
  useProfileChange,
  useProfiles,
} from '../../../api/manage/profiles.ts';
import { useBreakers } from '../../../api/queries.ts';
import { useMay } from '../../../api/session.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Time } from '../../../kit/data/time.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { BreakerBadge } from '../../operating/breaker-badge.tsx';
import { CredentialsForm } from './credentials-form.tsx';

const route = getRouteApi('/apps/$appId/profiles/$connector/$name');

/** One push profile: its state, and the form of its credentials; the form alone for one that is not stored yet. */
export function Profile() {
  const id = route.useParams();
  const { appId, connector, name } = id;
  const profiles = useProfiles(appId);
  const meta = useMeta();
  const mayChange = useMay('operator');
  const { t } = useTranslation();
  const described = meta.data?.connectors.find((one) => one.id === connector);
  const stored = profiles.data?.results.find((one) => one.connector === connector && one.name === name);
  const isReady = profiles.data !== undefined && meta.data !== undefined;
  const error = profiles.error ?? meta.error;
  return (
    <>
      <PageHeader
        title={`${connectorName(connector)} · ${name}`}
        side={stored && mayChange && <Delete id={id} />}
      />
      {error && !isReady ? (
        <Failure error={error} />
      ) : !isReady ? (
        <Loading rows={8} />
      ) : !described?.credentials ? (
        <Empty title={t('profile.noCredentials')} />
      ) : (
        <>
          {stored && <State profile={stored} appId={appId} />}
          {mayChange && (
            <CredentialsForm
              key={`${connector}/${name}`}
              id={id}
              connector={described}
              members={{}}
              isStored={stored !== undefined}
            />
          )}
        </>
      )}
      <Commands path={profilePath(id)} command={`profile put ${appId} ${connector} credentials.json`} />
    </>
  );
}

function State({ profile, appId }: { profile: PushProfile; appId: string }) {
  const { t } = useTranslation();
  const breaker = useBreakers().data?.results.find(
    (one) => one.appId === appId && one.connector === profile.connector && one.profile === profile.name,
  );
  return (
    <Panel title={t('profile.state')}>
      <Facts
        rows={[
          [t('profiles.breaker'), breaker ? <BreakerBadge key="breaker" breaker={breaker} /> : '–'],
          [t('operating.lastFailure'), breaker?.lastFailure?.reason ?? '–'],
          [t('profiles.created'), <Time key="created" at={profile.createdAt} />],
          [t('profiles.updated'), <Time key="updated" at={profile.updatedAt} />],
        ]}
      />
    </Panel>
  );
}

function Delete({ id }: { id: ProfileId }) {
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
        disabled={remove.isPending}
        onConfirm={() =>
          remove.mutate(undefined, {
            onSuccess: () => void navigate({ to: '/apps/$appId/profiles', params: { appId } }),
          })
        }
      >
        {t('profile.deleteText')}
      </Confirm>
    </>
  );
}
