import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { UserDetail } from '../../../../../client/operations.ts';
import { exportPerson, type UserAct, useUser, useUserChange } from '../../../api/access.ts';
import { isMissing } from '../../../api/client.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Download } from '../../../kit/controls/files.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { Members } from '../../../kit/form/members.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './users.module.css';
import { Contact } from './users.tsx';

const route = getRouteApi('/apps/$appId/users/$userId');

/** Page of a user: contacts, identities, lock, members, and actions. */
export function User() {
  const { t } = useTranslation();
  const { appId, userId } = route.useParams();
  const { data, error, isPending, refetch } = useUser(appId, userId);
  const { update } = useUserChange(appId, userId);
  const mayChange = useMay('operator');
  const isOwner = useMay('owner');
  const name = data?.user.username ?? userId;
  return (
    <>
      <PageHeader
        title={`${t('user.title')} ${name}`}
        side={data && mayChange && <DeleteUser appId={appId} userId={userId} name={String(name)} />}
      />
      {isPending ? (
        <Loading rows={8} />
      ) : isMissing(error) ? (
        <Empty title={t('user.missing')}>
          <Link to="/apps/$appId/users" params={{ appId }}>
            {t('nav.users')}
          </Link>
        </Empty>
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <>
          <Account appId={appId} detail={data} />
          {mayChange && <UserActs appId={appId} detail={data} />}
          <Members document={data.user} update={update} mayChange={mayChange} />
          {isOwner && <PersonalData appId={appId} userId={userId} name={String(name)} />}
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

/** Actions that need no confirmation, because their buttons describe them. */
const acts: UserAct[] = ['unlock', 'verify-email', 'verify-phone', 'send-reset'];

/** Actions of an operator on a user. An action without effect is disabled. */
function UserActs({ appId, detail }: { appId: string; detail: UserDetail }) {
  const { t } = useTranslation();
  const { act } = useUserChange(appId, detail.user.objectId ?? '');
  const run = (name: UserAct) => act.mutate(name);
  return (
    <Panel title={t('user.acts')}>
      <div className={styles.acts}>
        <Confirm
          trigger={t('userAct.logout')}
          title={t('user.logoutTitle')}
          action={t('userAct.logout')}
          disabled={act.isPending}
          onConfirm={() => run('logout')}
        >
          {t('user.logoutText')}
        </Confirm>
        {acts.map((name) => (
          <Button
            key={name}
            isBusy={act.isPending && act.variables === name}
            disabled={!isUseful(name, detail)}
            onClick={() => run(name)}
          >
            {t(`userAct.${name}`)}
          </Button>
        ))}
      </div>
      <p aria-live="polite" className={styles.done}>
        {act.isSuccess && t(`userDone.${act.variables}`)}
      </p>
      {act.error && <Failure error={act.error} />}
    </Panel>
  );
}

function isUseful(name: UserAct, { user, lock }: UserDetail): boolean {
  if (name === 'unlock') return lock.failures > 0 || lock.lockedUntil !== null;
  if (name === 'verify-email') return typeof user.email === 'string' && user.emailVerified !== true;
  if (name === 'verify-phone')
    return typeof user.mobilePhoneNumber === 'string' && user.mobilePhoneVerified !== true;
  return typeof user.email === 'string';
}

interface DeleteUserProps {
  appId: string;
  userId: string;
  name: string;
}

function DeleteUser({ appId, userId, name }: DeleteUserProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { remove } = useUserChange(appId, userId);
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <Confirm
        trigger={t('user.delete')}
        title={t('user.deleteTitle', { name })}
        action={t('user.deleteNow')}
        disabled={remove.isPending}
        onConfirm={() =>
          remove.mutate(undefined, {
            onSuccess: () => void navigate({ to: '/apps/$appId/users', params: { appId } }),
          })
        }
      >
        {t('user.deleteText')}
      </Confirm>
    </>
  );
}

/** Export and erasure of everything that is stored of the person, for owners. */
function PersonalData({ appId, userId, name }: DeleteUserProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { erase } = useUserChange(appId, userId);
  return (
    <Panel title={t('user.personalData')}>
      <p>{t('user.personalDataText')}</p>
      <div className={styles.acts}>
        <Download
          label={t('user.export')}
          name={`user-${userId}.json`}
          type="application/json"
          load={() => exportPerson(appId, userId)}
        />
        <Confirm
          trigger={t('user.erase')}
          title={t('user.eraseTitle', { name })}
          action={t('user.eraseNow')}
          typed={userId}
          disabled={erase.isPending}
          onConfirm={() =>
            erase.mutate(undefined, {
              onSuccess: () => void navigate({ to: '/apps/$appId/users', params: { appId } }),
            })
          }
        >
          {t('user.eraseText')}
        </Confirm>
      </div>
      {erase.error && <Failure error={erase.error} />}
    </Panel>
  );
}
