import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { UserDetail } from '../../../../../client/operations.ts';
import { type UserAct, useUserChange } from '../../../api/users.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import styles from './users.module.css';

/** Actions that need no confirmation, because their buttons describe them. */
const acts: UserAct[] = ['unlock', 'verify-email', 'verify-phone', 'send-reset'];

/** Actions of an operator on a user. An action without effect is disabled. */
export function UserActs({ appId, detail }: { appId: string; detail: UserDetail }) {
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

export function DeleteUser({ appId, userId, name }: DeleteUserProps) {
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
