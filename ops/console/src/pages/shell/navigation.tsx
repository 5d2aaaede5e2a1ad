import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { includesRole, useOperator } from '../../api/session.tsx';
import styles from './navigation.module.css';
import { appPlaces, isOpenTo, servicePlaces } from './places.ts';

/** Pages of the app and of the service. */
export function Navigation({ appId }: { appId: string | undefined }) {
  const { t } = useTranslation();
  const { role, apps } = useOperator();
  const person = { apps, may: (needed: typeof role) => includesRole(role, needed) };
  const active = { className: `${styles.link} ${styles.active}`, 'aria-current': 'page' as const };
  const common = { className: styles.link, activeProps: active };
  return (
    <nav className={styles.nav} aria-label={t('shell.navigation')}>
      {appId !== undefined && (
        <ul className={styles.group}>
          {appPlaces
            .filter((place) => place.isUnlisted !== true && isOpenTo(place, person))
            .map(({ to, title }) => (
              <li key={to}>
                <Link to={to} params={{ appId }} activeOptions={{ exact: to === '/apps/$appId' }} {...common}>
                  {t(title)}
                </Link>
              </li>
            ))}
        </ul>
      )}
      <ul className={styles.group}>
        {servicePlaces
          .filter((place) => place.isUnlisted !== true && isOpenTo(place, person))
          .map(({ to, title }) => (
            <li key={to}>
              <Link to={to} activeOptions={{ exact: to === '/' }} {...common}>
                {t(title)}
              </Link>
            </li>
          ))}
      </ul>
    </nav>
  );
}
