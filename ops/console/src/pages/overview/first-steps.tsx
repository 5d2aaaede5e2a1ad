import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { Overview } from '../../../../client/operations.ts';
import { useAppKey } from '../../api/apps.ts';
import { useMay } from '../../api/session.tsx';
import { buttonClass } from '../../kit/controls/button.tsx';
import { Snippet } from '../../kit/controls/copy.tsx';
import { Badge } from '../../kit/data/values.tsx';
import { Panel } from '../../kit/panel.tsx';
import styles from './overview.module.css';

const steps = [
  {
    name: 'profile',
    command: (appId: string) => `npx carillon profile put ${appId} apns credentials.json`,
  },
  {
    name: 'device',
    // A device on the device channel, because it needs no credentials.
    command: (appId: string, appKey = '$APP_KEY') =>
      `curl ${window.location.origin}/1.1/installations -H 'X-LC-Id: ${appId}' -H "X-LC-Key: ${appKey}" \\\n  -H 'Content-Type: application/json' -d '{"deviceType":"android","installationId":"my-first-device"}'`,
  },
  { name: 'push', command: (appId: string) => `npx carillon push --app ${appId} --alert Hello` },
] as const;

/** Page for each step. */
const pages: Partial<
  Record<string, { to: `/apps/$appId/${'profiles' | 'settings' | 'pushes/new'}`; title: string }>
> = {
  profile: { to: '/apps/$appId/profiles', title: 'nav.profiles' },
  device: { to: '/apps/$appId/settings', title: 'steps.keys' },
  push: { to: '/apps/$appId/pushes/new', title: 'compose.heading' },
};

/** The three steps to the first push of a new app. Finished steps have a check mark. */
export function FirstSteps({
  appId,
  setup,
}: {
  appId: string;
  setup: NonNullable<Overview['setup']>;
}) {
  const { t } = useTranslation();
  // Loads only the app key, because a device needs no other key.
  const appKey = useAppKey(appId, 'appKey', useMay('owner') && !setup.hasDevice).data?.value;
  const done = { profile: setup.hasProfile, device: setup.hasDevice, push: setup.hasPush };
  const next = steps.find(({ name }) => !done[name])?.name;
  return (
    <Panel
      title={t('steps.title')}
      side={
        <Link to="/apps/$appId/move-in" params={{ appId }}>
          {t('steps.moveIn')}
        </Link>
      }
    >
      <ol className={styles.steps}>
        {steps.map(({ name, command }) => (
          <li key={name} className={styles.step}>
            <span className={styles.stepTitle}>
              <Badge tone={done[name] ? 'good' : 'idle'}>
                {t(done[name] ? 'steps.done' : 'steps.open')}
              </Badge>
              {t(`steps.${name}`)}
              {!done[name] && pages[name] !== undefined && (
                <Link
                  to={pages[name].to}
                  params={{ appId }}
                  className={buttonClass(name === next ? 'primary' : 'plain')}
                >
                  {t(pages[name].title)}
                </Link>
              )}
            </span>
            {!done[name] && (
              <Snippet label={t(`steps.${name}Hint`)} text={command(appId, appKey)} />
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
