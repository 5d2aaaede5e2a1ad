import { getRouteApi, Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { UserDetail } from '../../../../../client/operations.ts';
import { useMay } from '../../../api/session.tsx';
import { useUser, useUserChange } from '../../../api/users.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { Members } from '../../../kit/form/members.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import { DeleteUser, UserActs } from './user-acts.tsx';
import { Contact } from './users.tsx';

const route = getRouteApi('/apps/$appId/users/$userId');

/** Page of a user: contacts, identities, lock, members, and actions. */
export function User() {
  const { t } = useTranslation();
  const { appId, userId } = route.useParams();
  const { data, error, isPending, refetch } = useUser(appId, userId);
  const { update } = useUserChange(appId, userId);
  const mayChange = useMay('operator');
  const name = data?.user.username ?? userId;
  return (
    <>
      <PageHeader
        title={`${t('user.title')} ${name}`}
        side={data && mayChange && <DeleteUser appId={appId} userId={userId} name={String(name)} />}
      />
      {isPending ? (
        <Loading rows={8} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <>
          <Account appId={appId} detail={data} />
          {mayChange && <UserActs appId={appId} detail={data} />}
          <Members document={data.user} update={update} mayChange={mayChange} />
        </>
      )}
      <Commands
        request={requestOf('getAppUser', { path: { appId, id: userId } })}
        command={`user show ${userId} --app ${appId}`}
      />
    </>
  );
}

interface OfUser {
  appId: string;
  detail: UserDetail;
}

function Account({ appId, detail }: OfUser) {
  const { t } = useTranslation();
  const { user, identities, hasPassword, lock } = detail;
  const { objectId, email, emailVerified, mobilePhoneNumber, mobilePhoneVerified } = user;
  const pointer = { user: { __type: 'Pointer', className: '_User', objectId } };
  return (
    <Panel title={t('user.account')}>
      <Facts
        rows={[
          [t('devices.id'), <code key="id">{objectId}</code>],
          [
            t('users.email'),
            <Contact key="email" value={email} isVerified={emailVerified === true} />,
          ],
          [
            t('users.phone'),
            <Contact
              key="phone"
              value={mobilePhoneNumber}
              isVerified={mobilePhoneVerified === true}
            />,
          ],
          [t('user.password'), t(hasPassword ? 'user.hasPassword' : 'user.noPassword')],
          [t('user.identities'), <Identities key="identities" identities={identities} />],
          [t('user.lock'), <Lock key="lock" lock={lock} />],
          [
            t('nav.devices'),
            <Link
              key="devices"
              to="/apps/$appId/devices"
              params={{ appId }}
              search={{ where: JSON.stringify(pointer) }}
            >
              {t('user.devices')}
            </Link>,
          ],
          [t('users.created'), <Time key="created" at={user.createdAt} />],
          [t('devices.updated'), <Time key="updated" at={user.updatedAt} />],
        ]}
      />
    </Panel>
  );
}

function Identities({ identities }: Pick<UserDetail, 'identities'>) {
  if (identities.length === 0) return <>–</>;
  return identities.map(({ platform, uid }) => (
    <div key={`${platform}/${uid}`}>
      {platform}: <code>{uid}</code>
    </div>
  ));
}

function Lock({ lock: { failures, lockedUntil } }: Pick<UserDetail, 'lock'>) {
  const { t } = useTranslation();
  if (lockedUntil === null) return <>{t('user.failures', { shown: formatCount(failures) })}</>;
  return (
    <>
      <Badge tone="bad">{t('user.locked')}</Badge> {t('user.until')} <Time at={lockedUntil} />
    </>
  );
}
