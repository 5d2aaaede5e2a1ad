import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../api/client.ts';
import { useSessionActions } from '../api/session.tsx';
import { Button } from '../kit/controls/button.tsx';
import { TextField } from '../kit/controls/field.tsx';
import styles from './login.module.css';
import { LanguageChoice } from './shell/preferences.tsx';

const codePrefix = '#code=';

/** Asks for a token, or redeems the code of a login link, which is in the fragment so that no server logs it. */
export function Login() {
  const { t } = useTranslation();
  const { login } = useSessionActions();
  const [token, setToken] = useState('');
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (credential: { token: string } | { code: string }) => {
    setBusy(true);
    setError(undefined);
    try {
      await login(credential);
    } catch (failure) {
      setError(messageOf(failure, 'code' in credential, t));
      setBusy(false);
    }
  };
  useLoginCode((code) => void submit({ code }));
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    void submit({ token: token.trim() });
  };
  return (
    <main className={styles.page}>
      <form className={styles.form} onSubmit={onSubmit}>
        <h1>{t('login.title')}</h1>
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
        <Button look="primary" type="submit" isBusy={isBusy}>
          {t('login.submit')}
        </Button>
        <LanguageChoice />
      </form>
    </main>
  );
}

/** Calls `redeem` once with the code of the address, and removes it from the address. */
function useLoginCode(redeem: (code: string) => void): void {
  const redeemed = useRef(false);
  useEffect(() => {
    if (redeemed.current || !window.location.hash.startsWith(codePrefix)) return;
    redeemed.current = true;
    const code = decodeURIComponent(window.location.hash.slice(codePrefix.length));
    window.history.replaceState(null, '', window.location.pathname + window.location.search);
    redeem(code);
  });
}

function messageOf(failure: unknown, isCode: boolean, t: (key: string) => string): string {
  if (!(failure instanceof ApiError)) return t('state.broken');
  if (failure.status === 0) return t('state.unreachable');
  if (failure.status === 429) return t('login.tooMany');
  if (failure.status === 401) return t(isCode ? 'login.usedCode' : 'login.wrong');
  return failure.message;
}
