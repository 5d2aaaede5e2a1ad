import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import styles from './navigation.module.css';

/** Pages of the app and of the service. */
export function Navigation({ appId }: { appId: string | undefined }) {
  const { t } = useTranslation();
  const active = { className: `${styles.link} ${styles.active}`, 'aria-current': 'page' as const };
  const common = { className: styles.link, activeProps: active };
  return (
    <nav className={styles.nav} aria-label={t('shell.navigation')}>
      {appId !== undefined && (
        <ul className={styles.group}>
          <li>
            <Link to="/apps/$appId" params={{ appId }} activeOptions={{ exact: true }} {...common}>
              {t('nav.overview')}
            </Link>
          </li>
          <li>
            <Link to="/apps/$appId/pushes" params={{ appId }} {...common}>
              {t('nav.pushes')}
            </Link>
          </li>
          <li>
            <Link to="/apps/$appId/devices" params={{ appId }} {...common}>
              {t('nav.devices')}
            </Link>
          </li>
          <li>
            <Link to="/apps/$appId/users" params={{ appId }} {...common}>
              {t('nav.users')}
            </Link>
          </li>
          <li>
            <Link to="/apps/$appId/profiles" params={{ appId }} {...common}>
              {t('nav.profiles')}
            </Link>
          </li>
          <li>
            <Link to="/apps/$appId/messages" params={{ appId }} {...common}>
              {t('nav.messages')}
            </Link>
          </li>
          <li>
            <Link to="/apps/$appId/settings" params={{ appId }} {...common}>
              {t('nav.settings')}
            </Link>
          </li>
        </ul>
      )}
      <ul className={styles.group}>
        <li>
          <Link to="/" activeOptions={{ exact: true }} {...common}>
            {t('nav.apps')}
          </Link>
        </li>
        <li>
          <Link to="/operating" {...common}>
            {t('nav.operating')}
          </Link>
        </li>
      </ul>
    </nav>
  );
}
