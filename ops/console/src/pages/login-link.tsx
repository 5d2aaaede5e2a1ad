import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { OtherPerson } from '../../../client/operations.ts';
import { ApiError } from '../api/client.ts';
import { type Credential, useSessionActions } from '../api/session.tsx';
import { Button } from '../kit/controls/button.tsx';
import styles from './login.module.css';
import { LanguageChoice } from './shell/navigation.tsx';

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
