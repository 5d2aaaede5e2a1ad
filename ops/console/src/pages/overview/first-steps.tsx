import { useTranslation } from 'react-i18next';
import type { Overview } from '../../../../../api/replies/admin/types.ts';
import { Snippet } from '../../kit/controls/copy.tsx';
import { Badge } from '../../kit/data/badge.tsx';
import { Panel } from '../../kit/panel.tsx';
import styles from './overview.module.css';

const steps = [
  {
    name: 'profile',
    command: (appId: string) => `npx carillon profile put ${appId} apns credentials.json`,
  },
  {
    name: 'device',
    command: (appId: string) =>
      `curl ${window.location.origin}/1.1/installations -H 'X-LC-Id: ${appId}' -H "X-LC-Key: $APP_KEY" \\\n  -H 'Content-Type: application/json' -d '{"deviceType":"ios","deviceToken":"…"}'`,
  },
  { name: 'push', command: (appId: string) => `npx carillon push --app ${appId} --alert Hello` },
] as const;

/** The three steps to the first push of a new app; done ones have a tick. */
export function FirstSteps({ appId, setup }: { appId: string; setup: NonNullable<Overview['setup']> }) {
  const { t } = useTranslation();
  const done = { profile: setup.hasProfile, device: setup.hasDevice, push: setup.hasPush };
  return (
    <Panel title={t('steps.title')}>
      <ol className={styles.steps}>
        {steps.map(({ name, command }) => (
          <li key={name} className={styles.step}>
            <span className={styles.stepTitle}>
              <Badge tone={done[name] ? 'good' : 'idle'}>{t(done[name] ? 'steps.done' : 'steps.open')}</Badge>
              {t(`steps.${name}`)}
            </span>
            {!done[name] && <Snippet label={t(`steps.${name}Hint`)} text={command(appId)} />}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
