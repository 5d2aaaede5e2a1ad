import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../api/client.ts';
import { useSessionActions } from '../api/session.tsx';
import { Button } from '../kit/controls/button.tsx';
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
