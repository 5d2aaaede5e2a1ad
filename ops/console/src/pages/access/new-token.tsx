import { Dialog } from '@base-ui/react/dialog';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { CreatedConsoleToken } from '../../../../client/operations.ts';
import { useCreateToken, useLoginLink } from '../../api/access.ts';
import { useAppMenu, useAppNames } from '../../api/apps.ts';
import { type Role, roles } from '../../api/session.tsx';
import button from '../../kit/controls/button.module.css';
import { Button } from '../../kit/controls/button.tsx';
import { Snippet } from '../../kit/controls/copy.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import dialog from '../../kit/dialog.module.css';
import { Failure } from '../../kit/states.tsx';
import styles from './access.module.css';

interface AppChoiceProps {
  /** Text of the option for no app. */
  any: string;
  /** Id of the selected app. Empty if none is selected. */
  value: string;
  change: (appId: string) => void;
}

/**
 * App selection. If there are too many apps for a menu, a search field finds apps by name or id.
 */
export function AppChoice({ any, value, change }: AppChoiceProps) {
  const { t } = useTranslation();
  const [text, setText] = useState('');
  const all = useAppMenu();
  const { apps, hasMore } = useAppMenu(text);
  const nameOf = useAppNames([value]);
  const isListed = value === '' || apps.some(({ appId }) => appId === value);
  return (
    <>
      {all.hasMore && (
        <TextField
          type="search"
          label={t('apps.find')}
          hint={hasMore ? t('apps.more') : undefined}
          maxLength={100}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <Choice
        label={t('people.app')}
        value={value}
        onChange={(event) => change(event.target.value)}
      >
        <option value="">{any}</option>
        {!isListed && (
          <option value={value} translate="no">
            {nameOf(value)}
          </option>
        )}
        {apps.map(({ appId, name }) => (
          <option key={appId} value={appId} translate="no">
            {name}
          </option>
        ))}
      </Choice>
    </>
  );
}

/** Button that opens the form for a new token. The token is shown once, until the dialog closes. */
export function NewToken() {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Trigger className={`${button.button} ${button.primary}`}>
        {t('people.create')}
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className={dialog.backdrop} />
        <Dialog.Popup className={`${dialog.popup} ${dialog.narrow}`}>
          <Dialog.Title className={dialog.title}>{t('people.create')}</Dialog.Title>
          <TokenForm />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function TokenForm() {
  const { t } = useTranslation();
  const create = useCreateToken();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [appId, setAppId] = useState('');
  const [expires, setExpires] = useState('');
  if (create.data) return <Created token={create.data} />;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({
      name: name.trim(),
      role,
      apps: appId === '' ? null : [appId],
      expiresAt: expires === '' ? null : new Date(expires).toISOString(),
    });
  };
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      <TextField
        label={t('people.name')}
        hint={t('people.nameHint')}
        required
        maxLength={100}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Choice
        label={t('people.role')}
        hint={t(`people.may.${role}`)}
        value={role}
        onChange={(event) => setRole(roles.find((one) => one === event.target.value) ?? 'viewer')}
      >
        {roles.map((one) => (
          <option key={one} value={one}>
            {t(`role.${one}`)}
          </option>
        ))}
      </Choice>
      <AppChoice any={t('people.allApps')} value={appId} change={setAppId} />
      <TextField
        label={t('people.expires')}
        hint={t('people.expiresHint')}
        type="datetime-local"
        value={expires}
        onChange={(event) => setExpires(event.target.value)}
      />
      {create.error && <Failure error={create.error} />}
      <div className={dialog.end}>
        <Dialog.Close className={`${button.button} ${button.plain}`}>
          {t('action.back')}
        </Dialog.Close>
        <Button variant="primary" type="submit" isBusy={create.isPending}>
          {t('people.createNow')}
        </Button>
      </div>
    </form>
  );
}

/** Shows the secret and a single-use login link for its holder. */
function Created({ token: { token, name } }: { token: CreatedConsoleToken }) {
  const { t } = useTranslation();
  const link = useLoginLink();
  return (
    <div className={styles.form}>
      <p role="status">{t('people.created1', { name })}</p>
      <Snippet label={t('login.token')} text={token} />
      {link.data ? (
        <Snippet label={t('people.linkOnce')} text={link.data.url} />
      ) : (
        <Button isBusy={link.isPending} onClick={() => link.mutate(token)}>
          {t('people.createLink')}
        </Button>
      )}
      {link.error && <Failure error={link.error} />}
      <div className={dialog.end}>
        <Dialog.Close className={`${button.button} ${button.primary}`}>
          {t('people.noted')}
        </Dialog.Close>
      </div>
    </div>
  );
}
