import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { OtherPerson } from '../../../client/operations.ts';
import { ApiError } from '../api/client.ts';
import { type Credential, useLoginMethods, useSessionActions } from '../api/session.tsx';
import { Button, buttonClass } from '../kit/controls/button.tsx';
import { TextField } from '../kit/controls/field.tsx';
import { useTitle } from '../kit/panel.tsx';
import styles from './login.module.css';
import { LanguageChoice } from './shell/navigation.tsx';

const codePrefix = '#code=';

/**
 * Returns the code of a login link and removes it from the URL. The code is in the fragment, so
 * that no server logs it.
 */
export function takeLoginCode(): string | undefined {
  const { hash, pathname, search } = window.location;
  if (!hash.startsWith(codePrefix)) return undefined;
  window.history.replaceState(null, '', pathname + search);
  return decodeURIComponent(hash.slice(codePrefix.length));
}

/** Login form for a token. `failure` is the reason why a login link failed. */
export function Login({ failure }: { failure: unknown }) {
  const { t } = useTranslation();
  const { login } = useSessionActions();
  const { data: methods } = useLoginMethods();
  useTitle(t('login.submit'));
  const [token, setToken] = useState('');
  const [error, setError] = useState(
    failure === undefined ? undefined : messageOf(failure, true, t),
  );
  const [isBusy, setBusy] = useState(false);
  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await login({ token: token.trim() });
    } catch (refusal) {
      setError(messageOf(refusal, false, t));
      setBusy(false);
    }
  };
  return (
    <main className={styles.page}>
      <form className={styles.form} onSubmit={(event) => void onSubmit(event)}>
        <h1>{t('login.title')}</h1>
        {methods?.oidc && (
          <a className={buttonClass('primary')} href="/console/oidc/start">
            {t('login.with', { host: methods.oidc })}
          </a>
        )}
        <TextField
          label={t('login.token')}
          hint={t('login.hint')}
          error={error}
          type="password"
          autoComplete="current-password"
          spellCheck={false}
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <Button variant="primary" type="submit" isBusy={isBusy}>
          {t('login.submit')}
        </Button>
        <LanguageChoice />
      </form>
    </main>
  );
}

function messageOf(failure: unknown, isCode: boolean, t: (key: string) => string): string {
  if (!(failure instanceof ApiError)) return t('state.broken');
  if (failure.status === 0) return t('state.unreachable');
  if (failure.status === 429) return t('login.tooMany');
  if (failure.status === 401) return t(isCode ? 'login.usedCode' : 'login.wrong');
  return failure.message;
}

interface LoginLinkProps {
  code: string;
  /** Shows the page of the URL, or the login if the link failed. */
  done: (failure?: unknown) => void;
}

/**
 * Redeems the code of a login link. If another person is logged in, asks for confirmation.
 * Otherwise, a person who opens a link from someone else would continue under another name without
 * noticing.
 */
export function LoginLink({ code, done }: LoginLinkProps) {
  const { t } = useTranslation();
  const { login } = useSessionActions();
  const [people, setPeople] = useState<OtherPerson>();
  const [isBusy, setBusy] = useState(false);
  const redeem = async (credential: Credential) => {
    setBusy(true);
    try {
      await login(credential);
      done();
    } catch (failure) {
      setBusy(false);
      const other = otherPersonIn(failure);
      if (other) setPeople(other);
      else done(failure);
    }
  };
  const isRedeemed = useRef(false);
  useEffect(() => {
    if (isRedeemed.current) return;
    isRedeemed.current = true;
    void redeem({ code });
  });
  if (!people) return null;
  const { current, asked } = people;
  return (
    <main className={styles.page}>
      <div className={styles.form}>
        <h1>{t('login.otherTitle')}</h1>
        <p>
          {t('login.otherText', {
            current: nameWithRole(current, t),
            asked: nameWithRole(asked, t),
          })}
        </p>
        <Button variant="primary" onClick={() => done()}>
          {t('login.stay', { name: current.name })}
        </Button>
        <Button isBusy={isBusy} onClick={() => void redeem({ code, replace: true })}>
          {t('login.replace', { name: asked.name })}
        </Button>
        <LanguageChoice />
      </div>
    </main>
  );
}

const nameWithRole = ({ name, role }: OtherPerson['current'], t: (key: string) => string): string =>
  `${name} (${t(`role.${role}`)})`;

/** Returns the two people of a refused link, or undefined for another failure. */
function otherPersonIn(failure: unknown): OtherPerson | undefined {
  if (!(failure instanceof ApiError) || failure.status !== 409) return undefined;
  return failure.reply as OtherPerson;
}
